"""Data sets and generators, one file each; all return a `Dataset`, which knows how to become a stream."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
