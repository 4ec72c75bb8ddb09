"""Data sets and generators, one file each; all return a `Dataset`, which knows how to become a stream.

Read `dataset` first, then any of them.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
