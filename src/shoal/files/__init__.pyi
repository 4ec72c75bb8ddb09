from .bad_rows import BadRow as BadRow
from .formats import FORMATS as FORMATS
from .opening import open_stream as open_stream
from .stream import FileStream as FileStream
from .tables import TableEncoder as TableEncoder

__all__ = ["FORMATS", "BadRow", "FileStream", "TableEncoder", "open_stream"]
