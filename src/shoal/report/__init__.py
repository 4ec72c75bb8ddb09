"""The report: pictures of what a run found, as one offline HTML page or as PNG and SVG files."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
