"""The site: these pages and a reference of every public name. `make docs` builds it into build/docs."""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

from generated import write_pages  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

from api_reference import MODULES, public_names  # noqa: E402

logging.getLogger("shoal").setLevel(logging.ERROR)  # pages do not say that the first learner was compiled
project, author, version = "shoal", "The shoal developers", metadata.version("shoal")
extensions = [
    "myst_parser",
    "numpydoc",
    "ages",
    "site_parts",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["api.md", "field", "coming", "inventories", "**/sg_execution_times.rst"]  # api's names: below
intersphinx_mapping = {  # names in code lead there; the build takes the lists of names from here
    "pandas": ("https://pandas.pydata.org/docs", "inventories/pandas.inv"),
    "python": ("https://docs.python.org/3", "inventories/python.inv"),
    "scipy": ("https://docs.scipy.org/doc/scipy", "inventories/scipy.inv"),
    "sklearn": ("https://scikit-learn.org/stable", "inventories/sklearn.inv"),
}
bibtex_bibfiles = ["../src/shoal/cli/commands/references.bib"]
sphinx_gallery_conf = {
    "examples_dirs": ["field", "../examples", "coming"],
    "gallery_dirs": ["learn", "do", "coming-from"],
    "filename_pattern": r"/(field|coming)/|/plot_",  # what runs; other examples need data, and tests run them
    "within_subsection_order": "site_parts.order",
    "abort_on_example_error": True,
    "reference_url": {"shoal": None},
    "doc_module": ("shoal",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "write_computation_times": False,
}
html_theme = "pydata_sphinx_theme"
html_title = "shoal"
html_math_renderer = "mathml"  # of site_parts: no request to the outside
html_extra_path = ["reproduction.html"]
html_static_path, html_css_files, html_js_files = ["static"], ["site.css"], ["site.js"]
html_favicon = "static/favicon.svg"
html_show_sourcelink = False
html_sidebars = {  # of pages that stand alone: nothing would be in it
    page: [] for page in [*(page.stem for page in HERE.glob("*.md")), "reference/commands", "reference/http"]
}
smartquotes_action = "q"  # quotes alone: --task is no dash
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": True,
    "header_links_before_dropdown": 3,  # titles are long
}
html_context = {"default_mode": "auto"}  # of light and dark
myst_heading_anchors = 3
default_role = "autolink"  # `name` is a link where there is such a name; attributes of many learners have one name
suppress_warnings = ["ref.python"]
numpydoc_show_class_members = False  # methods are listed by autodoc, attributes stand in the docstrings
autodoc_default_options = {"members": True, "inherited-members": False, "member-order": "bysource"}
autodoc_typehints = "none"  # docstrings say types and ranges

SECTION = """\
{title}
{line}

.. currentmodule:: {module}

.. automodule:: {module}
   :no-members:

.. autosummary::
   :toctree: {module}
   :nosignatures:

{names}
"""
FOLDER = HERE / "reference"


def write_reference() -> None:
    """A page for each module, which lists all of its public names."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    listed: set[int] = set()  # a name may be public in two modules: the first describes it
    for module in MODULES:
        owner = importlib.import_module(module)
        objects = {name: getattr(owner, name) for name in sorted(public_names(owner), key=str.lower)}
        described = [name for name, value in objects.items() if callable(value) and id(value) not in listed]
        listed |= {id(objects[name]) for name in described}
        text = SECTION.format(
            title=module, line="=" * len(module), module=module, names="\n".join(f"   {name}" for name in described)
        )
        (FOLDER / f"{module}.rst").write_text(text, "utf-8")


def link_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages link to files of the repository, of which readers of the site get a copy, and name what shoal has."""
    if Path(app.env.doc2path(page)).suffix == ".rst":
        source[0] = f".. currentmodule:: shoal\n\n{source[0]}"
        return
    folder = Path(app.env.doc2path(page)).parent

    def included(block: re.Match[str]) -> str:
        """A page of the repository, whose links hold from here."""
        path = (folder / block[1]).resolve()
        app.env.note_dependency(str(path))

        def from_here(link: re.Match[str]) -> str:
            target = path.parent / link[2]
            return link[1] if target.is_dir() else f"[{link[1]}]({os.path.relpath(target, folder)}{link[3] or ''})"

        return re.sub(r"\[([^\]]*)\]\((?!\w+:)([^)#]+)(#[^)]*)?\)", from_here, path.read_text("utf-8"))

    def as_copy(link: re.Match[str]) -> str:
        """Of a file beyond the pages; there is no copy of a folder."""
        target = (folder / link[2]).resolve()
        if target.is_dir():
            return link[1]
        return link[0] if target.is_relative_to(HERE) else f"[{link[1]}](path:{link[2]})"

    text = re.sub(r"^```\{include\} (\S+)\n```$", included, source[0], flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\((\.\./[^)#]*)(#[^)]*)?\)", as_copy, text)
    names = "|".join(public_names(importlib.import_module("shoal")))
    parts = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
    for i in range(0, len(parts), 2):  # the odd ones are code; a link's text is a link already
        parts[i] = re.sub(rf"(?<!\[)`({names})`(?!\])", r"{py:obj}`\1 <shoal.\1>`", parts[i])
    source[0] = "".join(parts)


def keep_symbols(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """In docstrings |f - y| and coef_ stand for themselves: reStructuredText would read references."""
    block = -1  # the indentation of the text above a literal block
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        block = -1 if line.strip() and indent <= block else block
        if block < 0 and line.strip() and not line.lstrip().startswith((">>>", "...", "===")):
            entry = re.match(r"\s*[\w, ]+ : ", line)  # of parameters and attributes
            head = entry.group() if entry else ""
            parts = re.split(r"(``.*?``|`[^`]*`)", line[len(head) :])
            for j in range(0, len(parts), 2):
                parts[j] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", parts[j].replace("|", r"\|"))
            lines[i] = head + "".join(parts)
        if line.rstrip().endswith("::"):
            block = indent


def leave_out_requests(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Methods by which scikit-learn routes metadata are described there."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", keep_symbols, priority=400)  # before numpydoc makes sections of it
    app.connect("autodoc-skip-member", leave_out_requests)


write_reference()  # before Sphinx looks for pages
write_pages(FOLDER)
