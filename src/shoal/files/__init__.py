"""Streams from files of any size: tables (CSV, JSON, Parquet, Arrow) and sparse text (LIBSVM, VW).

Reading order: `opening` (the door) with `options`, `paths` (which files, which format), `source` (bytes), `stream` (the
chunks as users see them), `labels` and `ids`; then the rooms `tables` and `sparse_text`, which turn bytes into rows.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
