"""Tables: CSV, NDJSON, Parquet and Arrow, whose columns become features. The doors: `open_table`, `TableEncoder`."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
