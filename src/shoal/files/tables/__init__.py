"""Tables: CSV, JSON, Parquet and Arrow, whose columns become features. The doors: `open_table`, `TableEncoder`.

Reading order: `reader` (the way of a row); `table_files` with `csv`, `json` and `columnar` (formats to batches);
`check_rows` with `column_kinds`, `values_in_text` and `label_columns` (batches to values); `encoder` with
`column_state`, `words` and `assemble` (values to features). `encode_one` and `learn_one` are the twins of `encoder` for
single rows; tests hold them to the same bits.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
