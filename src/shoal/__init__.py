"""shoal: online multi-task learning. The public names, loaded when first used (SPEC 1)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
