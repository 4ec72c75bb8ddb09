"""The papers' experiments: tables and figures as data and code, run by `shoal reproduce`.

Read `experiment` first (an experiment as data), then a paper in `by_paper`, `protocols` (data and learner to numbers),
`runner` and `outcome`. `claims` judges the papers' sentences; `page` and `text` print everything.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
