"""A picture with its title and caption."""

import re
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import altair as alt

from shoal.extras import named_extra
from shoal.report.style import CONFIG, in_the_dark

PICTURES = (".svg", ".pdf", ".png")
TITLE_CHARACTERS, CAPTION_CHARACTERS = 84, 112  # a line
# Pictures scroll, for in a narrow cell their text would be too small. A notebook's theme is its own, whatever the
# system's: JupyterLab and nbconvert say it in an attribute, VS Code in a class.
NOTEBOOK_STYLE = f"""
figure.shoal svg {{ max-width: none; }}
{in_the_dark(':is([data-jp-theme-light="false"], .vscode-dark) .shoal')}
@media (prefers-color-scheme: dark) {{
{in_the_dark("body:not([data-jp-theme-light], .vscode-light, .vscode-dark) .shoal")}
}}
"""


@dataclass(frozen=True)
class Figure:
    """One picture."""

    name: str  # of its files
    title: str  # the finding, in one sentence
    caption: str  # how to read it
    chart: Any  # altair chart, without title

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite description, for pages that set title and caption in text."""
        return _described(self.chart)

    def save(self, path: Path) -> None:
        """Write the picture with its title; the ending of the name decides the format."""
        with named_extra("a report"):
            import vl_convert

        spec = _described(self._titled())
        if path.suffix == ".png":
            path.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
        elif path.suffix == ".pdf":
            path.write_bytes(vl_convert.vegalite_to_pdf(spec))
        else:
            path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")

    def svg(self, padding: int = 5) -> str:
        """The picture as SVG without title and caption, for pages that set these in text: one image with one name."""
        with named_extra("a report"):
            import vl_convert

        spec = self.spec() | {"padding": padding}
        spec["config"] = spec["config"] | {"aria": False}  # not a list of its marks
        picture = re.sub(r' (?:role|aria-roledescription)="[^"]*"', "", vl_convert.vegalite_to_svg(spec))
        return picture.replace("<svg", f'<svg role="img" aria-label="{escape(self.title)}"', 1)

    def _repr_html_(self) -> str:
        """For notebooks: the picture as they can draw it without a network, in the dark in its colors for the dark."""
        text = f"<b>{escape(self.title)}</b> {escape(self.caption)}"
        picture = f'<div style="overflow-x: auto" tabindex="0">{self.svg(padding=24)}</div>'
        caption = f'<figcaption style="max-width: 80ch; margin-top: 8px">{text}</figcaption>'
        return f'<style>{NOTEBOOK_STYLE}</style><figure class="shoal" style="margin: 0">{picture}{caption}</figure>'

    def _titled(self) -> Any:
        title, subtitle = (
            textwrap.wrap(self.title, TITLE_CHARACTERS),
            textwrap.wrap(self.caption, CAPTION_CHARACTERS),
        )
        return self.chart.properties(title=alt.TitleParams(title, subtitle=subtitle), padding=24)


def _described(chart: Any) -> dict[str, Any]:
    """The chart as Vega-Lite, unchecked: checking takes longer than drawing (the tests check)."""
    spec: dict[str, Any] = chart.configure(**CONFIG).to_dict(validate=False)
    return spec
