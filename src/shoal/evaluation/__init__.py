"""Evaluation: progressive validation, metrics, and the verdict whether sharing pays."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
