"""Tables in the papers' own layout: a line a learner, a column a number, the paper's above and ours below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from shoal.papers.experiment import Metric
from shoal.papers.outcome import Outcome, Row
from shoal.papers.text import number

COLUMNS, HEADINGS = 10, 8  # of numbers, and of groups of them, before a table is cut in two
NARROW = 5  # columns up to which the paper's number and ours fit on one line
SIGNS = {
    "reproduced": "=", "better": "▲", "worse": "▼", "differs": "≠", "given": "", "reference": "1", "failed": "!",
    "no data": "!", "not yet": "…",
}  # fmt: skip
LEGEND = (
    "The paper's number comes first (above, or to the left), ours after it. = reproduced, ▲ better, ▼ worse, "
    "≠ differs; 1 is the reference of a relative comparison; no sign: nothing to compare. Point at a "
    "number for its comparison."
)


class Table(NamedTuple):
    """Headings in two lines, and rows of cells (None where there is no number)."""

    groups: list[tuple[str, int]]  # heading, columns below it
    columns: list[str]
    lines: list[tuple[str, list[Row | None]]]

    @property
    def is_compared(self) -> bool:
        """Whether the paper prints a number of it, other than those that are given."""
        cells = [cell for _, line in self.lines for cell in line if cell is not None]
        return any(cell.paper is not None and cell.verdict != "given" for cell in cells)


def tables(outcome: Outcome) -> Iterator[Table]:
    """Learners by data and metric; with one learner, its metrics by data, as the papers print it."""
    rows = outcome.rows()
    entrants, data = _names(row.entrant for row in rows), _names(row.data for row in rows)
    told = {row.metric for row in rows}
    metrics = [metric for metric in outcome.experiment.metrics if metric in told]
    cells = {(row.entrant, row.data, row.metric.name): row for row in rows}
    if len(entrants) == 1:
        for some in _pieces(data, HEADINGS):
            lines = [(metric.title, [cells.get((entrants[0], d, metric.name)) for d in some]) for metric in metrics]
            yield Table([], some, lines)
        return
    groups: dict[str, list[tuple[str, Metric]]] = {}
    for d in data:
        for metric in metrics:
            if any((e, d, metric.name) in cells for e in entrants):
                groups.setdefault(metric.group or d, []).append((d, metric))
    for some in _beside(groups):
        columns = [column for heading in some for column in groups[heading]]
        lines = [(e, [cells.get((e, d, metric.name)) for d, metric in columns]) for e in entrants]
        yield Table([(h, len(groups[h])) for h in some], [metric.title for _, metric in columns], lines)


def _beside(groups: Mapping[str, Sequence[Any]]) -> Iterator[list[str]]:
    """As many headings in a table as there is room for their columns."""
    some: list[str] = []
    for heading, columns in groups.items():
        if len(some) == HEADINGS or (some and sum(len(groups[h]) for h in some) + len(columns) > COLUMNS):
            yield some
            some = []
        some.append(heading)
    if some:
        yield some


def _names(found: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(found))


def _pieces(items: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def as_html(table: Table) -> str:
    """With the verdict's sign and, on pointing, its comparison."""
    groups = "".join(f'<th colspan="{n}">{escape(name)}</th>' for name, n in table.groups)
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    top = f"<tr><th></th>{groups}</tr>" if groups else ""
    lines = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(map(_cell, cells))}</tr>"
        for name, cells in table.lines
        if any(cell is not None for cell in cells)
    )
    kind = "wide" if len(table.columns) > NARROW else "wide narrow"
    return (
        f'<div class="scroll"><table class="{kind}"><thead>{top}<tr><th></th>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _cell(row: Row | None) -> str:
    if row is None:
        return "<td></td>"
    form = row.metric.form
    theirs = "" if row.paper is None else f'<span class="theirs">{number(row.paper, row.paper_deviation, form)}</span>'
    told = row.shuffles > 1 and row.metric.better  # times and counts are told without their deviations
    ours = number(row.ours, row.deviation if told else None, form)
    sign = SIGNS.get(row.verdict, "")
    mark = f' <b class="{_kind(row.verdict)}">{sign}</b>' if sign else ""
    return f'<td title="{escape(_comparison(row))}">{theirs}<span>{ours}{mark}</span></td>'


def _comparison(row: Row) -> str:
    if row.relative is not None and row.verdict != "reference":
        return (
            f"{row.verdict}: relative to the reference {row.relative[0]:.2f} in the paper, {row.relative[1]:.2f} here"
        )
    return f"{row.verdict}{': ' + row.why if row.why else ''}"


def _kind(verdict: str) -> str:
    """Better is no praise: a baseline that does better than published speaks against its paper."""
    return {"reproduced": "good", "better": "bad", "worse": "bad", "differs": "bad", "failed": "bad"}.get(
        verdict, "plain"
    )
