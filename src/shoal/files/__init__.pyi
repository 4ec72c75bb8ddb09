from .bad_rows import BadRow as BadRow
from .encoder import TableEncoder as TableEncoder
from .formats import FORMATS as FORMATS
from .opening import open_stream as open_stream
from .stream import FileStream as FileStream

__all__ = ["FORMATS", "BadRow", "FileStream", "TableEncoder", "open_stream"]
