"""An outcome as text: the table paper | ours | difference, what was tried, and the tests."""

import math
import re
from collections.abc import Iterable

from shoal.papers.fairness import edges
from shoal.papers.outcome import Outcome, Row
from shoal.papers.ranks import Ranking, rankings
from shoal.papers.table_similarity import alike

HEADINGS = ("data", "learner", "", "paper", "ours", "difference", "verdict")
OURS = (0, 1, 2, 4)  # the columns there are where nothing is published


def lines(outcome: Outcome) -> list[str]:
    """The whole table and what belongs to it, as the program prints it."""
    experiment = outcome.experiment
    rows = outcome.rows()
    output = [f"{experiment.id}: {experiment.title}", f"{experiment.source}; protocol: {experiment.protocol}"]
    if outcome.quick:
        output.append("A QUICK RUN on pieces of the data: it shows that everything runs, its numbers mean nothing.")
    output += ["", *(_aligned(table(rows)) if outcome.runs else ["nothing of it has run"]), ""]
    output += [f"- {sentence}" for sentence in remarks(outcome, rows)]
    return output


def table(rows: list[Row]) -> list[tuple[str, ...]]:
    """Headings and lines; without the paper's columns if they are all empty."""
    lines_ = [HEADINGS, *(cells(row) for row in rows)]
    if any(row.paper is not None or row.verdict for row in rows):
        return lines_
    return [tuple(line[i] for i in OURS) for line in lines_]


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    form = row.metric.form
    return (
        row.data,
        row.entrant,
        row.metric.title,
        number(row.paper, row.paper_deviation, form),
        number(row.ours, row.deviation if row.shuffles > 1 else None, form),
        "" if math.isnan(row.difference) else f"{row.difference:+{form}}",
        row.verdict + _relative(row),
    )


def _relative(row: Row) -> str:
    """The relative numbers that a verdict compares, if it does not compare the number itself."""
    if row.relative is None or row.verdict == "reference":
        return ""
    return f" relative to the reference: {row.relative[0]:.2f}, ours {row.relative[1]:.2f}"


def number(value: float | None, deviation: float | None, form: str) -> str:
    """`value ± deviation`, or a dash; powers of ten are short: 5.1e-8, not 5.1e-08."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")
    return re.sub(r"e([+-])0*(?=\d)", lambda found: "e" + found[1].strip("+"), text)


def remarks(outcome: Outcome, rows: list[Row]) -> list[str]:
    """Reasons, parameters, what was tried, tests, notes."""
    found = missing(outcome)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.why and row.verdict != "no data":
            reasons.setdefault(f"{row.verdict}: {row.why}", []).append(f"{row.data} / {row.entrant}")
    found += [f"{reason} ({_some(rows_)})" for reason, rows_ in reasons.items()]
    found += [sentence for row in rows for sentence in _tried(outcome, row)]
    settings = dict.fromkeys((row.data, row.entrant, row.setting) for row in rows if row.setting)
    if outcome.experiment.runs_of:
        found.append(f"runs and settings are those of {outcome.experiment.runs_of}")
    else:
        found += [f"chosen on a held-out shuffle: {data} / {entrant}: {setting}" for data, entrant, setting in settings]
        found += untuned(outcome)
    found += [f"on the edge of its grid: {edge}" for edge in edges(outcome)]
    found += [sentence for ranking in rankings(outcome) for sentence in tests(ranking)]
    found += [*alike(outcome), *outcome.experiment.notes]
    effort = f"{len(outcome.seconds)} runs, {duration(sum(outcome.seconds.values()))}"
    return [*found, effort + (f"; {outcome.origin}" if outcome.origin else "")]


def missing(outcome: Outcome) -> list[str]:
    """Each reason once, with the data sets that it keeps away."""
    reasons: dict[str, list[str]] = {}
    for data, reason in outcome.missing.items():
        reasons.setdefault(reason, []).append(data)
    return [f"without {_some(data)}: {reason}" for reason, data in reasons.items()]


def untuned(outcome: Outcome) -> list[str]:
    """Why learners have no grid where others have one."""
    reasons: dict[str, list[str]] = {}
    for entrant in outcome.main_entrants():
        if entrant.untuned:
            reasons.setdefault(entrant.untuned, []).append(entrant.name)
    return [f"not tuned: {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def duration(seconds: float) -> str:
    """Processor time of jobs in words."""
    return f"{seconds:.0f} s of one core" if seconds < 100 else f"{seconds / 60:.0f} min of one core"


def _tried(outcome: Outcome, row: Row) -> Iterable[str]:
    """A published number under other treatments."""
    found = [] if row.paper is None or row.verdict in ("given", "derived", "not run") else outcome.tried(row)
    if found:
        n = outcome.experiment.variant_seeds
        ours = float(outcome.values(row.entrant, row.data, row.metric)[:n].mean())
        values = "; ".join(f"{name}: {value:{row.metric.form}}" for name, value in found)
        compare = f"paper {row.paper:{row.metric.form}}, ours on the same {n} shuffles {ours:{row.metric.form}}"
        yield f"tried for {row.data} / {row.entrant}, {row.metric.title} ({compare}) - {values}"


def tests(ranking: Ranking) -> list[str]:
    """The sentences about one data set."""
    ranked = sorted(zip(ranking.ranks.tolist(), ranking.names, strict=True))
    order = ", ".join(f"{name} {rank:.1f}" for rank, name in ranked)
    friedman = (
        ""
        if math.isnan(ranking.p_value)
        else f" (Friedman p = {ranking.p_value:.2g}; ranks further apart than {ranking.critical_difference:.2f} differ "
        "beyond chance, Nemenyi, 5 %)"
    )
    sentences = [f"{ranking.data}: mean ranks over {ranking.n} {ranking.of}: {order}{friedman}"]
    if ranking.against:
        pairs = ", ".join(f"{name} {p:.2g}" for name, p in ranking.against.items())
        sentences.append(f"{ranking.data}: {ranking.champion} against, Wilcoxon's p with Holm's correction: {pairs}")
    if not math.isnan(ranking.agreement):
        sentences.append(
            f"{ranking.data}: the order of the means agrees with the paper's order by Kendall's tau = "
            f"{ranking.agreement:.2f}"
        )
    return sentences


def _some(names: list[str], most: int = 4) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _aligned(table: list[tuple[str, ...]]) -> list[str]:
    """Words to the left, numbers to the right; a name is not repeated."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    aligned, last = [], ("", "")
    for row in table:
        shown = ["" if row[0] == last[0] else row[0], "" if row[:2] == last else row[1], *row[2:]]
        last = row[0], row[1]
        cells_ = [
            f"{cell:>{width}}" if 3 <= i <= 5 else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(shown, widths, strict=True))
        ]
        aligned.append("  ".join(cells_).rstrip())
    return aligned
