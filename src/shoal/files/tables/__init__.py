"""Tables: CSV, NDJSON, Parquet and Arrow, whose columns become features. The doors: `open_table`, `TableEncoder`."""

from shoal.files.tables.reader import open_table
from shoal.files.tables.transformer import TableEncoder

__all__ = ["TableEncoder", "open_table"]
