"""The papers' experiments: tables and figures as data and code, run by `shoal reproduce`."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
