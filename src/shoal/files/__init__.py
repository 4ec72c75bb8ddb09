"""Streams from files of any size: tables (CSV, Parquet, NDJSON, Arrow) and sparse text (LIBSVM, VW)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
