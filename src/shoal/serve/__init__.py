"""The service: a model that answers while it learns from a log, and loses nothing.

Read `contract` first, then `engine`, `apply` and `log`; README.md beside this file says why.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
