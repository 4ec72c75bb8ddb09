"""One HTML page for all papers: every table with its verdicts, every figure, every deviation said."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import metadata, resources
from pathlib import Path
from string import Template

from shoal.papers.outcome import Outcome, Row
from shoal.papers.text import HEADINGS, duration, remarks, table
from shoal.report.figure import Figure

CLASSES = {"reproduced": "good", "better": "good", "worse": "bad", "failed": "bad"}
PAPERS = {
    "osmtl": "Murugesan, Liu, Carbonell, Yang: Adaptive Smoothed Online Multi-Task Learning (NIPS 2016)",
    "romco": "Yang, Zhao, Gao: Robust Online Multi-Task Learning with Correlative and Personalized Structures (2017)",
    "sparse_mtl": "Srijith, Shevade: Multi-Task Learning Using Shared and Task Specific Information (2012)",
    "cavallanti": "Cavallanti, Cesa-Bianchi, Gentile: Linear Algorithms for Online Multitask Classification (2010)",
    "yang_li": "Yang, Li: Efficient Online Multi-Task Learning via Adaptive Kernel Selection (WWW 2020)",
    "theory": "Mistakes against the papers' bounds",
    "leaderboard": "As it should be done: the library's own leaderboard",
}


def write_page(path: str | os.PathLike[str], outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes as one self-contained page, papers in their order.

    Parameters
    ----------
    path : path of the file; an old one is overwritten
    outcomes : sequence of Outcome

    Raises
    ------
    ValueError
        If there are none.
    FileNotFoundError
        If the folder does not exist.
    """
    path = Path(path)
    if not outcomes:
        raise ValueError("outcomes is empty; expected at least one experiment")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for the page does not exist; make it first")
    papers = dict.fromkeys(outcome.experiment.paper for outcome in outcomes)
    parts = []
    for paper in papers:
        parts.append(f'<h2 id="{paper}">{escape(PAPERS.get(paper, paper))}</h2>')
        parts += [_section(outcome) for outcome in outcomes if outcome.experiment.paper == paper]
    template = Template(resources.files("shoal.papers").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        summary=_summary(outcomes), contents=_contents(outcomes), parts="\n".join(parts),
        version=metadata.version("shoal"),
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")


def _summary(outcomes: Sequence[Outcome]) -> str:
    """How many numbers of the papers came out how."""
    counts = Counter(row.verdict for outcome in outcomes for row in outcome.rows() if row.paper is not None)
    total = sum(counts.values())
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    quick = "<p class=warning>This is a quick run, on pieces of the data: its numbers mean nothing.</p>"
    work = {key: seconds for outcome in outcomes for key, seconds in outcome.seconds.items()}  # some tables share runs
    took = f"{len(work):,} runs, {duration(sum(work.values()))}"
    return f"<p>{total} published numbers: {parts or 'none'}. {took}.</p>" + quick * any(
        outcome.quick for outcome in outcomes
    )


def _contents(outcomes: Sequence[Outcome]) -> str:
    items = [
        f'<li><a href="#{_anchor(o)}">{escape(o.experiment.id)}</a> {escape(o.experiment.title)}</li>' for o in outcomes
    ]
    return f"<ul>{''.join(items)}</ul>"


def _anchor(outcome: Outcome) -> str:
    return outcome.experiment.id.replace("/", "-")


def _section(outcome: Outcome) -> str:
    experiment, rows = outcome.experiment, outcome.rows()
    figure = None if experiment.figure is None or not outcome.runs else experiment.figure(outcome)
    notes = "".join(f"<li>{escape(sentence)}</li>" for sentence in remarks(outcome, rows))
    return (
        f'<section id="{_anchor(outcome)}"><h3>{escape(experiment.title)}</h3>'
        f'<p class="source">{escape(experiment.source)} &middot; <b>protocol: {escape(experiment.protocol)}</b> '
        f"&middot; <code>shoal reproduce {escape(experiment.id)}</code></p>"
        f"{_figure(figure)}{_table(rows)}<details open><summary>Notes</summary><ul>{notes}</ul></details></section>"
    )


def _table(rows: list[Row]) -> str:
    if not rows:
        return ""
    headings, *lines = table(rows)
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = []
    for row, line in zip(rows, lines, strict=True):
        plain = [f"<td>{escape(value)}</td>" for value in line]
        if headings == HEADINGS:
            title = f' title="{escape(row.why)}"' if row.why else ""
            plain[-1] = f'<td class="{CLASSES.get(row.verdict, "plain")}"{title}>{escape(row.verdict)}</td>'
        body.append(f"<tr>{''.join(plain)}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return ""
    import vl_convert

    picture = vl_convert.vegalite_to_svg(figure.spec())
    text = f"<b>{escape(figure.title)}</b> {escape(figure.caption)}"
    return f'<figure><div class="scroll">{picture}</div><figcaption>{text}</figcaption></figure>'
