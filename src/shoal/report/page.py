"""The report as one HTML page that needs no network: text, table and interactive pictures."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from importlib import metadata, resources
from itertools import count
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from shoal.datasets.files import cache_folder
from shoal.evaluation import Evaluation, Orders, Verdict
from shoal.evaluation.comparison import UNDECIDED
from shoal.evaluation.learner_ranks import Standing, conclusion
from shoal.evaluation.metrics.metric import LEAST_ROWS
from shoal.evaluation.result import higher_is_better, label, main_metric, number
from shoal.extras import named_extra
from shoal.files.messages import plural
from shoal.html_tables import html_table
from shoal.report.figure import Figure
from shoal.report.figures import figures
from shoal.report.orders import order_figures
from shoal.report.style import DARK
from shoal.report.tasks import task_section
from shoal.whole_file import whole_file, write_whole

SCORE = "score"  # how a column is written: as `number` does
NONE = float("nan")  # the score of a learner that does not have it; this object, other NaNs are undefined scores


@cache
def drawing_library() -> str:
    """The drawing library's code, for a script element.

    Making it takes a second, most of the time of a small report, so that it is kept in the user's cache folder, a file
    per version, if that can be written.
    """
    with named_extra("a report"):
        import vl_convert

    with suppress(OSError, RuntimeError):  # no such file yet; no home
        return _kept_library().read_bytes().decode()
    code: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    with suppress(OSError, RuntimeError):
        path = _kept_library()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, code.encode(), fsync=True)
    return code


def _kept_library() -> Path:
    return cache_folder() / "report" / f"vega-embed-{metadata.version('vl-convert-python')}.js"


def write_report(
    path: str | os.PathLike[str],
    evaluations: Mapping[str, Evaluation],
    *,
    verdict: Verdict | None = None,
    ranking: Sequence[Standing] = (),
    title: str = "Does sharing pay?",
    subtitle: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the report: summary, verdict and pictures in one self-contained HTML file.

    Parameters
    ----------
    path : path of the file; an old one is replaced once the new one is whole
    evaluations : dict of name -> Evaluation
        Of one stream; the learner first, then its baselines (see `shoal.report.figures`).
    verdict : Verdict, optional
        From `shoal.evaluation.compare`.
    ranking : sequence of Standing
        From `shoal.evaluation.learner_ranks.standings`: the page begins with its conclusion and its table.
    title, subtitle : str
        Default subtitle: the number of rows and tasks.
    notes : sequence of str
        How the data were changed; the evaluations' own notes are added.

    Raises
    ------
    ValueError
        If `evaluations` is empty.
    FileNotFoundError
        If the folder of `path` does not exist.
    """
    drawn = figures(evaluations)
    first = next(iter(evaluations.values()))
    if subtitle is None:
        subtitle = f"{plural(first.rows, 'row')} of {plural(first.tasks, 'task')}, in one pass"
    all_notes = [*notes, *dict.fromkeys(note for evaluation in evaluations.values() for note in evaluation.notes)]
    parts = [task_section(evaluations), _table(evaluations)]  # the verdict has the scores that matter
    sections = [_verdict(verdict), _ranking(ranking), *(parts if verdict is not None else parts[::-1])]
    _write_page(path, title, subtitle, sections, drawn, all_notes)


def write_order_report(
    path: str | os.PathLike[str], found: Orders, *, title: str = "Which learner is best?", notes: Sequence[str] = ()
) -> None:
    """Write the report of learners over several orders: the conclusion, the table, learning curves and ranks.

    Parameters
    ----------
    path : path of the file; an old one is replaced once the new one is whole
    found : Orders
        From `shoal.evaluation.compare_orders`.
    title : str
    notes : sequence of str
        How the data were changed.
    """
    conclusion, *sentences = found.sentences()
    titles, *rows = found.table()
    text = f"<h2>{escape(conclusion)}</h2>{_scrolled(html_table(titles, rows))}"
    text += "".join(f'<p class="caption below">{escape(sentence)}</p>' for sentence in sentences)
    one = next(iter(found.evaluations.values()))[0]
    subtitle = (
        f"{plural(one.rows, 'row')} of {plural(one.history[-1].tasks, 'task')}, in {plural(len(found.seeds), 'order')}"
    )
    _write_page(path, title, subtitle, [f'<section class="verdict">{text}</section>'], order_figures(found), notes)


def _write_page(
    path: str | os.PathLike[str],
    title: str,
    subtitle: str,
    sections: Sequence[str],
    drawn: Sequence[Figure],
    notes: Sequence[str],
) -> None:
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for the report does not exist; make it first")
    specs = {figure.name: figure.spec() for figure in drawn}
    page = Template(resources.files("shoal.report").joinpath("template.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        sections="\n".join(filter(None, [*sections, *map(_figure, drawn, count(1)), _notes(notes)])),
        version=metadata.version("shoal"),
        library=drawing_library(),
        dark=json.dumps(DARK),
        specs=json.dumps(specs, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
    )
    with whole_file(path) as part:
        part.write_text(page, encoding="utf-8")


def _ranking(placed: Sequence[Standing]) -> str:
    """The conclusion about learners, and their ranks."""
    if not placed:
        return ""
    titles = ("learner", f"macro-{label(placed[0].metric)}", "mean rank over tasks", "behind", "±", "p")
    rows = []
    for one in placed:
        if one.rank is None:
            rows.append((one.name, "diverged" if one.diverged else "no score", "", "", "", ""))
        else:
            gap = (number(one.behind), number(one.standard_error), f"{one.p_value:.2g}") if one.rank > 1 else ("",) * 3
            rows.append((one.name, number(one.score), f"{one.mean_rank:.2f}", *gap))
    return (
        f'<section class="verdict"><h2>{escape(conclusion(placed))}</h2>{_scrolled(html_table(titles, rows))}</section>'
    )


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    kind = "verdict" if verdict.outcome == UNDECIDED else f"verdict {verdict.outcome.replace(' ', '-')}"
    harm = str(verdict.harm or "")
    after = f'<p class="caption below">{escape(harm)}</p>' if harm else ""
    text = f"<h2>{escape(verdict.sentence)}</h2>{_scrolled(verdict.to_html())}{after}"
    return f'<section class="{kind}">{text}</section>'


def _table(evaluations: Mapping[str, Evaluation]) -> str:
    """A row per learner; the best value of each metric is bold."""
    first = next(iter(evaluations.values()))
    main = main_metric(first)
    columns: dict[str, tuple[list[float], str, int]] = {  # heading -> values, format, +1 if more is better
        label(name): ([e.overall.get(name, NONE) for e in evaluations.values()], SCORE, _sign(name))
        for name in first.overall
    }
    columns[f"macro-{label(main)}"] = [e.macro.get(main, NONE) for e in evaluations.values()], SCORE, _sign(main)
    updates = [e.n_updates / e.rows for e in evaluations.values()]
    if set(updates) != {1.0}:
        columns["updates a row"] = updates, ".2f", 0
    columns["seconds"] = [e.wall_seconds for e in evaluations.values()], ".2f", 0
    head = "".join(f"<th>{escape(heading)}</th>" for heading in ("learner", *columns))
    body = ""
    for i, name in enumerate(evaluations):
        cells = "".join(_cell(values, i, form, sign) for values, form, sign in columns.values())
        body += f"<tr><td>{escape(name)}</td>{cells}</tr>"
    caption = (
        f"Every row was predicted before it was learned. Macro-{label(main)} is the mean over tasks{_least(main)}. "
        "Seconds are those spent in the learner, loading compiled code included."
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    text = f'<h2>Scores</h2><p class="caption">{caption}</p>'
    return f"<section>{text}{_scrolled(table)}</section>"


def _scrolled(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _least(metric: str) -> str:
    return f" of {LEAST_ROWS[metric]} rows or more" if metric in LEAST_ROWS else ""


def _sign(metric: str) -> int:
    return 1 if higher_is_better(metric) else -1


def _cell(values: Sequence[float], i: int, form: str, sign: int) -> str:
    if values[i] is NONE:
        return "<td>–</td>"
    if np.isnan(values[i]):
        return "<td>undefined</td>"
    best = sign != 0 and len(values) > 1 and values[i] == sign * np.nanmax(sign * np.array(values))
    text = number(values[i]) if form == SCORE else f"{values[i]:{form}}"
    return f"<td{' class=best' if best else ''}>{text}</td>"


def _figure(figure: Figure, number: int) -> str:
    text = f'<p class="number">Figure {number}</p><h2>{escape(figure.title)}</h2>'
    text += f'<p class="caption">{escape(figure.caption)}</p>'
    return f'<section>{text}<div class="scroll"><div class="chart" id="{figure.name}"></div></div></section>'


def _notes(notes: Sequence[Any]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(str(note))}</li>" for note in notes)
    return f"<section><h2>Notes</h2><ul>{items}</ul></section>"
