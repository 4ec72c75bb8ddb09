"""The report: pictures of a run, as one offline HTML page or as PNG and SVG files.

Read `figures` first (all pictures of a run), then `page`; each other module is a picture, and `style` their look.
"""

import lazy_loader as lazy

from shoal.extras import naming_extras

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = naming_extras(__name__, __getattr__)
