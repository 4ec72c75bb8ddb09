"""The service: a model that answers while it learns from a log, and loses nothing."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
