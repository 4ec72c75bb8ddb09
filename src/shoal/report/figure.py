"""A picture with what it says."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from shoal.extras import named_extra
from shoal.report.style import CONFIG

PICTURES = (".svg", ".pdf", ".png")
TITLE_CHARACTERS, CAPTION_CHARACTERS = 84, 112  # a line


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
        """Write the picture with its title; the ending says as what."""
        with named_extra("a report"):
            import vl_convert

        spec = _described(self._titled())
        if path.suffix == ".png":
            path.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
        elif path.suffix == ".pdf":
            path.write_bytes(vl_convert.vegalite_to_pdf(spec))
        else:
            path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """For notebooks, which draw it."""
        return self._titled()._repr_mimebundle_(**options)

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
