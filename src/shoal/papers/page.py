"""One HTML page for all papers: their claims judged, every table with its verdicts, every figure and deviation."""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import metadata, resources
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from shoal.papers.by_paper.protocol_notes import NOTES, ProtocolNotes
from shoal.papers.claims.claim import FAILS, HOLDS, VERDICTS
from shoal.papers.claims.rules import EQUAL
from shoal.papers.claims.table import SIGNS, Line, conditions, judged, summary, two_numbers
from shoal.papers.experiment import Experiment, Metric, experiments
from shoal.papers.fairness import edges
from shoal.papers.outcome import Outcome, Row
from shoal.papers.ranks import rankings
from shoal.papers.table_similarity import alike
from shoal.papers.text import duration, number, remarks
from shoal.report.figure import Figure
from shoal.report.style import in_the_dark

TALL, LINE = 660, 33  # pixels: a taller picture is folded and its table shown, unless its lines are taller still
TITLES = {
    "osmtl": "Murugesan, Liu, Carbonell, Yang: Adaptive Smoothed Online Multi-Task Learning (NIPS 2016)",
    "romco": "Yang, Zhao, Gao: Robust Online Multi-Task Learning with Correlative and Personalized Structures (2017)",
    "sparse_mtl": "Srijith, Shevade: Multi-Task Learning Using Shared and Task Specific Information (2012)",
    "cavallanti": "Cavallanti, Cesa-Bianchi, Gentile: Linear Algorithms for Online Multitask Classification (2010)",
    "yang_li": "Yang, Li: Efficient Online Multi-Task Learning via Adaptive Kernel Selection (WWW 2020)",
    "theory": "Mistakes against the papers' bounds",
    "leaderboard": "As it should be done: the library's own leaderboard",
}

SHORT = {
    "claims": "The claims",
    "osmtl": "Murugesan and others, 2016 (OSMTL)",
    "romco": "Yang, Zhao, Gao, 2017 (ROMCO)",
    "sparse_mtl": "Srijith, Shevade, 2012 (SparseMTL)",
    "cavallanti": "Cavallanti and others, 2010",
    "yang_li": "Yang, Li, 2020",
    "theory": "Bounds",
    "leaderboard": "Leaderboard",
}
BEYOND = ("better", "worse")  # than published: it speaks for the paper or against it
KINDS = {HOLDS: "good", FAILS: "bad"}
WHY = "Baselines are tuned as the papers' own methods are, and some data sets are others: both move verdicts."
RULE = (
    "Each claim has a rule that yields cases: data sets, pairs of learners, settings. It holds if all its cases "
    "do, under conditions if half of them or more do, and otherwise it does not. Better means a difference over "
    "shuffles that chance gives less often than one time in twenty, two-sided, by Student's t, with Holm's "
    f"correction over all cases of the claim; equal means an interval within a margin of {EQUAL['error']:g} % of "
    f"error or {EQUAL['auc']:g} of AUC. (Before, two standard errors were asked of each case alone.) A claim that "
    "asks for an order or a bound says so. Shuffles are orders and splits of the same rows, so this speaks of "
    "these data; where splits overlap, t by the corrected error of Nadeau and Bengio, which says more of other "
    "data, stands beside the plain one. The better form of a method, like the best baseline, is picked on the test "
    "rows. “By its own numbers” is the same rule on what the paper prints."
)
COLUMNS, HEADINGS = 10, 8  # of numbers, and of groups of them, before a table is cut in two
NARROW = 5  # columns up to which the paper's number and ours fit on one line
ROW_SIGNS = {
    "reproduced": "=",
    "better": "▲",
    "worse": "▼",
    "differs": "≠",
    "given": "",
    "reference": "1",
    "failed": "!",
    "no data": "!",
    "not yet": "…",
}
LEGEND = (
    "The paper's number comes first (above, or to the left), ours after it. = reproduced, ▲ better, ▼ worse, "
    "≠ differs; 1 is the reference of a relative comparison; no sign: nothing to compare. ▲ and ▼ are blue where they "
    "speak for the paper, as its own method that is better or a baseline that is worse does, and orange where they "
    "speak against it. Times are multiples of the learner's that the heading names. Point at a "
    "number for its comparison."
)


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
        of_paper = [line for line in lines if line.claim.paper == paper]
        parts.append(f'<h2 id="{paper}">{escape(TITLES.get(paper, paper))}</h2>')
        start = _opening(of_paper, NOTES.get(paper))
        parts.append(f"<section>{start}</section>" if start else "")
        parts += [_section(outcome) for outcome in outcomes if outcome.experiment.paper == paper]
    template = Template(resources.files("shoal.papers").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.substitute(
        claims=_claim_table(lines, TITLES) if lines else "",
        summary=_summary(outcomes),
        contents=_contents(outcomes),
        papers="".join(f'<a href="#{paper}">{escape(SHORT.get(paper, paper))}</a>' for paper in ("claims", *papers)),
        dark=in_the_dark("figure"),
        legend=escape(LEGEND),
        parts="\n".join(parts),
        version=metadata.version("shoal"),
    )
    path.write_text(page, encoding="utf-8")


def _summary(outcomes: Sequence[Outcome]) -> str:
    """Every printed number by its verdict, counted once."""
    counts: Counter[str] = Counter()
    own: Counter[str] = Counter()
    unreached: Counter[str] = Counter()
    for outcome in outcomes:
        experiment = outcome.experiment
        unreached[experiment.unreached_why] += experiment.unreached
        if not experiment.repeats:
            printed = [row for row in outcome.rows() if row.paper is not None and row.verdict != "derived"]
            counts.update(row.verdict for row in printed)
            own.update(row.verdict for row in printed if row.entrant in experiment.own)
    total = counts.total() + unreached.total()
    left_out = sum(counts.pop(verdict, 0) for verdict in ("given", "reference"))
    parts = ", ".join(
        f"{n} {verdict}" + (f" ({own[verdict]} of them of a paper's own method)" if verdict in BEYOND else "")
        for verdict, n in counts.most_common()
    )
    reasons = "given to the learner, describe the data, or are the reference of a comparison"
    aside = f" {left_out} more are {reasons}." if left_out else ""
    aside += "".join(f" {n} {why}." for why, n in unreached.items() if n)
    work = {key: seconds for outcome in outcomes for key, seconds in outcome.seconds.items()}  # some tables share runs
    effort = f"{len(work):,} runs, {duration(sum(work.values()))}"
    tuned = sum(len(outcome.tuned) for outcome in outcomes if not outcome.experiment.runs_of)
    ended = sum(len(edges(outcome)) for outcome in outcomes if not outcome.experiment.runs_of)
    effort += (
        f". {ended} of {tuned} settings that were chosen lie on an end of their grid where a wider one could be better"
    )
    quick = "<p class=warning>This is a quick run, on pieces of the data: its numbers mean nothing.</p>"
    summary = f"<p>{total} printed numbers. Compared are {counts.total()}: {parts or 'none'}.{aside} {effort}.</p>"
    return summary + quick * any(outcome.quick for outcome in outcomes)


def _contents(outcomes: Sequence[Outcome]) -> str:
    """A line a paper."""
    papers: dict[str, list[str]] = {}
    for outcome in outcomes:
        name = outcome.experiment.id.partition("/")[2]
        papers.setdefault(outcome.experiment.paper, []).append(f'<a href="#{_anchor(outcome)}">{escape(name)}</a>')
    return "".join(
        f'<p><a href="#{paper}"><b>{escape(SHORT.get(paper, paper))}</b></a>: {", ".join(links)}</p>'
        for paper, links in papers.items()
    )


def _anchor(outcome: Outcome) -> str:
    return outcome.experiment.id.replace("/", "-")


def _section(outcome: Outcome) -> str:
    """The paper's table is open, or where it prints none, our picture; the claims are folded."""
    experiment, rows = outcome.experiment, outcome.rows()
    figure = _figure(None if experiment.figure is None or not outcome.runs else experiment.figure(outcome))
    parts = list(tables(outcome)) if rows else []
    compared = [part for part in parts if part.is_compared] or parts
    table = "".join(map(_table_html, compared))
    more = "".join(_table_html(part) for part in parts if part not in compared and outcome.runs)
    notes = "".join(f"<li>{escape(sentence)}</li>" for sentence in remarks(outcome, rows))
    if not outcome.runs:
        shown, folded = f"<p>Not run yet: <code>shoal reproduce {escape(experiment.id)}</code>.</p>", ""
    elif experiment.is_aside or {row.verdict for row in rows} <= {"given", "derived"}:
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
    differing = [bool(data.differs) for data in outcome.main_data()]
    other_data = ", on other data" if all(differing) else ", in part on other data" if any(differing) else ""
    made = f"{escape(outcome.origin)} &middot; " if outcome.origin else ""
    source = (
        f'<p class="source">{escape(experiment.source)} &middot; protocol: {escape(experiment.protocol)}{other_data} '
        f'&middot; {made}<code>shoal reproduce {escape(experiment.id)}</code> &middot; <a href="#top">top</a></p>'
    )
    above, within = (source, "") if shown else ("", source)  # where all is folded, a heading and its folds are enough
    return (
        f'<section id="{_anchor(outcome)}"{"" if shown else " class=folded"}><h3>{escape(experiment.title)}</h3>{above}'
        f"{shown}{order}{folded}{_fold('More numbers', more)}"
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
    text = f"<b>{escape(figure.title)}</b> {escape(figure.caption)}"
    return f'<figure><div class="scroll" tabindex="0">{figure.svg()}</div><figcaption>{text}</figcaption></figure>'


# ---- the claims: one table of all, and the lines that open a paper --------------------------------------------------


def _claim_table(lines: Sequence[Line], titles: dict[str, str]) -> str:
    """All claims, paper by paper."""
    body = []
    for paper in dict.fromkeys(line.claim.paper for line in lines):
        body.append(f'<tr class="paper"><th colspan="4"><a href="#{paper}">{escape(titles[paper])}</a></th></tr>')
        body += [_claim_row(line) for line in lines if line.claim.paper == paper]
    head = "<tr><th>claim</th><th>verdict</th><th>two numbers</th><th>by its own numbers</th></tr>"
    return (
        f'<section id="claims"><h2>The claims</h2><p>{escape(WHY)} {escape(summary(lines))}</p>'
        f"{_fold('How a claim is judged', f'<p>{escape(RULE)}</p>')}"
        f'<div class="scroll" tabindex="0"><table class="claims"><thead>{head}</thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
        "</section>"
    )


def _claim_row(line: Line) -> str:
    claim, judgement = line.claim, line.ours
    details = [
        f"<p><b>{escape(claim.place)}:</b> “{escape(claim.quote)}”</p>",
        f"<p>Read as: {escape(claim.reading)}</p>",
    ]
    revised = f"The rule was changed after runs had been seen: {claim.revised}" if claim.revised else ""
    no_error = f"Without an error: {claim.no_error}." if claim.no_error else ""
    verdict = judgement.for_other_rows
    other_rows = f"With errors corrected for splits that overlap, it {verdict}." if verdict else ""
    texts = (conditions(judgement), claim.remark, other_rows, no_error, revised)
    details += [f"<p>{escape(text)}</p>" for text in texts if text]
    cases = "".join(f"<li>{SIGNS[HOLDS if c.holds else FAILS]} {escape(str(c))}</li>" for c in judgement.cases)
    details.append(f"<ul>{cases}</ul>" if cases else "")
    changed = (
        f"<small>rule changed; before: {SIGNS[claim.before]} {escape(claim.before)}</small>" if claim.before else ""
    )
    return (
        f'<tr id="claim-{claim.id}">'
        f"<td><details><summary>{escape(claim.title)}</summary>{''.join(details)}</details></td>"
        f"<td>{_badge(judgement.verdict)}{changed}</td>"
        f'<td><a href="#{claim.link.replace("/", "-")}">{escape(two_numbers(judgement))}</a></td>'
        f'<td class="plain">{escape(line.theirs or "not printed")}</td></tr>'
    )


def _badge(verdict: str) -> str:
    """A sign, a word, and then a color."""
    return f'<span class="badge {KINDS.get(verdict, "plain")}">{SIGNS[verdict]} {escape(verdict)}</span>'


def _opening(lines: Iterable[Line], notes: ProtocolNotes | None) -> str:
    """A line a verdict, the protocol box, the differences."""
    known = list(lines)
    items = "".join(
        f"<li>{_badge(verdict)} {_claim_links(known, verdict)}</li>"
        for verdict in VERDICTS
        if any(line.ours.verdict == verdict for line in known)
    )
    verdicts = f'<ul class="verdicts">{items}</ul>' if items else ""
    return verdicts + ("" if notes is None else _protocol(notes))


def _claim_links(lines: Iterable[Line], verdict: str) -> str:
    found = [line for line in lines if line.ours.verdict == verdict]
    links = [
        f'<a href="#claim-{line.claim.id}">{escape(line.claim.title)}</a>'
        + (f" ({escape(two_numbers(line.ours))})" if verdict in (HOLDS, FAILS) else "")
        for line in found
    ]
    return "; ".join(links)


def _protocol(notes: ProtocolNotes) -> str:
    lines = "".join(
        f"<tr><th>{escape(what)}</th><td>{escape(theirs)}</td><td>{escape(ours)}</td></tr>"
        for what, theirs, ours in notes.protocol
    )
    differences = "".join(f"<li>{escape(sentence)}</li>" for sentence in notes.differences)
    return (
        '<div class="scroll" tabindex="0"><table class="box">'
        "<thead><tr><th>protocol</th><th>the paper's</th><th>ours</th></tr></thead>"
        f"<tbody>{lines}</tbody></table></div><ul>{differences}</ul>"
    )


# ---- tables in the papers' own layout: a line a learner, a column a number, the paper's above and ours below --------


class Table(NamedTuple):
    """Headings in two lines, and rows of cells (None where there is no number)."""

    groups: list[tuple[str, int]]  # heading, columns below it
    columns: list[str]
    lines: list[tuple[str, list[Row | None]]]
    own: tuple[str, ...] = ()  # learners that are the paper's own method

    @property
    def is_compared(self) -> bool:
        """Whether the paper prints a number of it, other than those that are given."""
        cells = [cell for _, line in self.lines for cell in line if cell is not None]
        return any(cell.paper is not None and cell.verdict not in ("given", "derived") for cell in cells)


def tables(outcome: Outcome) -> Iterator[Table]:
    """Learners by data and metric; with one learner, its metrics by data, as the papers print it."""
    rows = outcome.rows()
    entrants, data = _names(row.entrant for row in rows), _names(row.data for row in rows)
    present = {row.metric for row in rows}
    metrics = [metric for metric in outcome.experiment.metrics if metric in present]
    cells = {(row.entrant, row.data, row.metric.name): row for row in rows}
    if len(entrants) == 1:
        for some in _pieces(data, HEADINGS):
            lines = [(metric.title, [cells.get((entrants[0], d, metric.name)) for d in some]) for metric in metrics]
            yield Table([], some, lines, outcome.experiment.own)
        return
    groups: dict[str, list[tuple[str, Metric]]] = {}
    for d in data:
        for metric in metrics:
            if any((e, d, metric.name) in cells for e in entrants):
                groups.setdefault(metric.group or d, []).append((d, metric))
    for some in _beside(groups):
        columns = [column for heading in some for column in groups[heading]]
        lines = [(e, [cells.get((e, d, metric.name)) for d, metric in columns]) for e in entrants]
        titles = [_heading(outcome.experiment, entrants[0], *column) for column in columns]
        yield Table([(h, len(groups[h])) for h in some], titles, lines, outcome.experiment.own)


def _heading(experiment: Experiment, entrant: str, data: str, metric: Metric) -> str:
    """A metric's title; of a ratio, with the learner that it is over."""
    if not metric.as_ratio or experiment.reference is None:
        return metric.title
    return f"{metric.title} / {experiment.reference(entrant, data, metric.name)[0][0]}'s"


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


def _table_html(table: Table) -> str:
    """With the verdict's sign and, on pointing, its comparison."""
    groups = "".join(f'<th colspan="{n}">{escape(name)}</th>' for name, n in table.groups)
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    top = f"<tr><td></td>{groups}</tr>" if groups else ""
    lines = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(_cell(cell, table.own) for cell in cells)}</tr>"
        for name, cells in table.lines
        if any(cell is not None for cell in cells)
    )
    kind = "wide" if len(table.columns) > NARROW else "wide narrow"
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}"><thead>{top}<tr><td></td>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _cell(row: Row | None, own: Sequence[str]) -> str:
    if row is None:
        return "<td></td>"
    form = row.metric.form
    has_deviation = row.shuffles > 1 and row.metric.better  # times and counts are told without their deviations
    ours = number(row.ours, row.deviation if has_deviation else None, form)
    paper = "" if row.paper is None else number(row.paper, row.paper_deviation, form)
    seconds = ""
    if row.metric.as_ratio and row.relative is not None:
        seconds = f"; {paper} s in the paper, {ours} s here"
        paper, ours = map(_multiple, row.relative)
    printed = f'<span class="theirs">{paper}</span>' if paper else ""
    sign = ROW_SIGNS.get(row.verdict, "")
    mark = f' <b class="{_color_of(row, own)}">{sign}</b>' if sign else ""
    return f'<td title="{escape(_comparison(row) + seconds)}">{printed}<span>{ours}{mark}</span></td>'


def _multiple(ratio: float) -> str:
    return f"×{ratio:,.0f}" if ratio >= 10 else f"×{ratio:.2g}"


def _comparison(row: Row) -> str:
    if row.relative is not None and row.verdict != "reference":
        return (
            f"{row.verdict}: relative to the reference {row.relative[0]:.2f} in the paper, {row.relative[1]:.2f} here"
        )
    return f"{row.verdict}{': ' + row.why if row.why else ''}"


def _color_of(row: Row, own: Sequence[str]) -> str:
    """The meaning of a verdict for the paper: a baseline that does better than published speaks against it."""
    if row.verdict in BEYOND:
        return "good" if (row.verdict == "better") == (row.entrant in own) else "bad"
    return {"reproduced": "good", "failed": "bad"}.get(row.verdict, "plain")
