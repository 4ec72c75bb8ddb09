"""One HTML page for all papers: their claims judged, every table with its verdicts, every figure and deviation."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib import metadata, resources
from pathlib import Path
from string import Template

from shoal.papers.boxes import BOXES
from shoal.papers.claims.table import judged
from shoal.papers.library import experiments
from shoal.papers.outcome import Outcome
from shoal.papers.ranks import rankings
from shoal.papers.text import alike, duration, remarks
from shoal.papers.verdicts import claim_table, opening
from shoal.papers.wide import LEGEND, as_html, tables
from shoal.report.figure import Figure

TALL, LINE = 660, 33  # pixels: a taller picture is folded and its table shown, unless its lines are taller still
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
    papers = list(dict.fromkeys(outcome.experiment.paper for outcome in outcomes))
    lines = [line for line in judged(outcomes, experiments()) if line.claim.paper in papers]
    parts = []
    for paper in papers:
        mine = [line for line in lines if line.claim.paper == paper]
        parts.append(f'<h2 id="{paper}">{escape(PAPERS.get(paper, paper))}</h2>')
        start = opening(mine, BOXES.get(paper))
        parts.append(f"<section>{start}</section>" if start else "")
        parts += [_section(outcome) for outcome in outcomes if outcome.experiment.paper == paper]
    template = Template(resources.files("shoal.papers").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        claims=claim_table(lines, PAPERS) if lines else "", summary=_summary(outcomes), contents=_contents(outcomes),
        legend=escape(LEGEND), parts="\n".join(parts), version=metadata.version("shoal"),
    )  # fmt: skip
    path.write_text(page, encoding="utf-8")


def _summary(outcomes: Sequence[Outcome]) -> str:
    """How many numbers of the papers came out how."""
    counts = Counter(row.verdict for outcome in outcomes for row in outcome.rows() if row.paper is not None)
    left_out = sum(counts.pop(verdict, 0) for verdict in ("given", "reference"))
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    quick = "<p class=warning>This is a quick run, on pieces of the data: its numbers mean nothing.</p>"
    work = {key: seconds for outcome in outcomes for key, seconds in outcome.seconds.items()}  # some tables share runs
    took = f"{len(work):,} runs, {duration(sum(work.values()))}"
    others = "given to the learner, describe the data, are means of the others, or are the reference of a comparison"
    aside = f" {left_out} more are {others}." if left_out else ""
    return f"<p>{counts.total()} published numbers: {parts or 'none'}.{aside} {took}.</p>" + quick * any(
        outcome.quick for outcome in outcomes
    )


def _contents(outcomes: Sequence[Outcome]) -> str:
    """A line a paper."""
    papers: dict[str, list[str]] = {}
    for outcome in outcomes:
        name = outcome.experiment.id.partition("/")[2]
        papers.setdefault(outcome.experiment.paper, []).append(f'<a href="#{_anchor(outcome)}">{escape(name)}</a>')
    return "".join(
        f'<p><a href="#{paper}"><b>{paper}</b></a>: {", ".join(links)}</p>' for paper, links in papers.items()
    )


def _anchor(outcome: Outcome) -> str:
    return outcome.experiment.id.replace("/", "-")


def _section(outcome: Outcome) -> str:
    """Open is what the paper prints: its table, or where it prints none, our picture; what claims tell is folded."""
    experiment, rows = outcome.experiment, outcome.rows()
    figure = _figure(None if experiment.figure is None or not outcome.runs else experiment.figure(outcome))
    parts = list(tables(outcome)) if rows else []
    compared = [part for part in parts if part.is_compared] or parts
    table = "".join(map(as_html, compared))
    others = "".join(as_html(part) for part in parts if part not in compared and outcome.runs)
    notes = "".join(f"<li>{escape(sentence)}</li>" for sentence in remarks(outcome, rows))
    if not outcome.runs:
        shown, folded = f"<p>Not run yet: <code>shoal reproduce {escape(experiment.id)}</code>.</p>", ""
    elif experiment.is_aside or {row.verdict for row in rows} == {"given"}:
        shown, folded = "", _fold("Table", table) + _fold("Picture", figure)
    elif figure and not experiment.published and _height(figure) <= max(TALL, LINE * table.count("<tr>")):
        shown, folded = figure, _fold("Numbers", table)
    else:
        shown, folded = table, _fold("Picture", figure)
    agreement = "; ".join(
        f"{ranking.data}, {ranking.agreement:.2f}" for ranking in rankings(outcome) if not math.isnan(ranking.agreement)
    )
    order = f"<p>Order of the means against the paper's, Kendall's tau: {escape(agreement)}.</p>" if agreement else ""
    order += "".join(f"<p>{escape(sentence)}</p>" for sentence in alike(outcome))
    source = (
        f'<p class="source">{escape(experiment.source)} &middot; protocol: {escape(experiment.protocol)} '
        f'&middot; <code>shoal reproduce {escape(experiment.id)}</code> &middot; <a href="#top">top</a></p>'
    )
    above, within = (source, "") if shown else ("", source)  # where all is folded, a heading and its folds are enough
    return (
        f'<section id="{_anchor(outcome)}"{"" if shown else " class=folded"}><h3>{escape(experiment.title)}</h3>{above}'
        f"{shown}{order}{folded}{_fold('More numbers', others)}"
        f"{_fold('Settings, tests, notes', f'{within}<ul>{notes}</ul>')}</section>"
    )


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>" if content else ""


def _height(picture: str) -> float:
    found = re.search(r'<svg[^>]* height="([0-9.]+)"', picture)
    return float(found[1]) if found else 0.0


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return ""
    import vl_convert

    picture = vl_convert.vegalite_to_svg(figure.spec())
    text = f"<b>{escape(figure.title)}</b> {escape(figure.caption)}"
    return f'<figure><div class="scroll">{picture}</div><figcaption>{text}</figcaption></figure>'
