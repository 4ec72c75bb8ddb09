"""shoal: online multi-task learning. The public names, loaded when first used (SPEC 1)."""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
