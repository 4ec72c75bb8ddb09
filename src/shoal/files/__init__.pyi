from .messages import BadRow as BadRow
from .opening import open_stream as open_stream
from .opening import open_tables as open_tables
from .options import ReadOptions as ReadOptions
from .paths import FORMATS as FORMATS
from .stream import FileStream as FileStream
from .tables import TableEncoder as TableEncoder

__all__ = ["FORMATS", "BadRow", "FileStream", "ReadOptions", "TableEncoder", "open_stream", "open_tables"]
