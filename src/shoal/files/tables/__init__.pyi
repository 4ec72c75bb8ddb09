from .reader import open_given as open_given
from .reader import open_table as open_table
from .transformer import TableEncoder as TableEncoder

__all__ = ["TableEncoder", "open_given", "open_table"]
