"""Evaluation: progressive validation, metrics, and the verdict whether sharing pays.

Read `progressive` first (predict, then learn), then `result`, `metrics` and `verdict`. `stream` cuts what it is given;
`tuning`, `periodic` and `model_adapter` bring further competitors.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
