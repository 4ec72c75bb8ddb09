"""Picture: which labels are mistaken for which."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from shoal.evaluation import Evaluation
from shoal.report.figure import Figure
from shoal.report.style import CARD, GAIN, INK, LOSS, data, panel_title

MOST_LABELS, MOST_PAIRS = 12, 10
CELL, ROW, WIDTH = 40, 30, 260  # pixels
LEAST_WRITTEN = 0.005  # of a label's rows: a share that is written into its cell
NAME = 110  # pixels of a label's name


def confusion_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """The most frequent labels by what they were taken for, and the most frequent mistakes; None without mistakes."""
    name, first = next(iter(evaluations.items()))
    counts = {pair: rows for pair, rows in first.confusion.items() if pair[1] is not None}
    wrong = {pair: rows for pair, rows in counts.items() if pair[0] != pair[1]}
    if not wrong:
        return None
    of_label: dict[Any, int] = {}
    for (true, _), rows in counts.items():
        of_label[true] = of_label.get(true, 0) + rows
    labels = sorted(of_label, key=lambda label: -of_label[label])
    worst = sorted(wrong, key=lambda pair: -wrong[pair])[:MOST_PAIRS]
    (true, guess), mistakes = worst[0], sum(wrong.values())
    title = f"{name} takes {true} for {guess} most often: {wrong[worst[0]] / mistakes:.0%} of its mistakes"
    shown = f"the {MOST_LABELS} most frequent of {len(labels)} labels" if len(labels) > MOST_LABELS else "each label"
    caption = (
        f"Left: of the rows of {shown}, how many in a hundred were predicted as what. Right: the most frequent "
        "mistakes, the label that came, then the one that was predicted."
    )
    pairs = [{"pair": f"{a} → {b}", "rows": wrong[a, b], "share": wrong[a, b] / of_label[a]} for a, b in worst]
    table = _table(counts, of_label, labels[:MOST_LABELS])
    return Figure("confusion", title, caption, alt.hconcat(table, _pairs(pairs)))


def _table(counts: Mapping[tuple[Any, Any], int], of_label: Mapping[Any, int], labels: list[Any]) -> Any:
    """A cell for each label and prediction, as strong as the share is large."""
    cells = [
        {
            "true": str(true),
            "predicted": str(guess),
            "rows": counts.get((true, guess), 0),
            "share": counts.get((true, guess), 0) / of_label[true],
            "text": f"{100.0 * counts.get((true, guess), 0) / of_label[true]:.0f}",
        }
        for true in labels
        for guess in labels
    ]
    names = [str(label) for label in labels]
    axis: dict[str, Any] = {"ticks": False, "domain": False, "grid": False, "labelLimit": NAME}
    base = alt.Chart(data(cells)).encode(
        x=alt.X("predicted:N", sort=names, title="predicted", axis=alt.Axis(labelAngle=-90, **axis)),
        y=alt.Y("true:N", sort=names, title="label", axis=alt.Axis(**axis)),
        tooltip=["true:N", "predicted:N", alt.Tooltip("rows:Q", format=","), alt.Tooltip("share:Q", format=".1%")],
    )
    strength = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.05, 0.95]), legend=None)
    rects = base.mark_rect(color=GAIN).encode(opacity=strength)
    text = base.transform_filter(alt.datum.share >= LEAST_WRITTEN).mark_text(fontSize=11)
    text = text.encode(
        text="text:N",
        color=alt.condition(alt.datum.share > 0.5, alt.value(CARD), alt.value(INK)),
    )
    side = CELL * len(labels)
    return alt.layer(rects, text).properties(
        width=side, height=side, title=panel_title("what each label was taken for")
    )


def _pairs(pairs: list[dict[str, Any]]) -> Any:
    axis = alt.Axis(labelLimit=2 * NAME, domain=False, ticks=False)
    base = alt.Chart(data(pairs)).encode(
        y=alt.Y("pair:N", sort=[pair["pair"] for pair in pairs], title=None, axis=axis)
    )
    tooltip = ["pair:N", alt.Tooltip("rows:Q", format=","), alt.Tooltip("share:Q", title="of the label", format=".1%")]
    x = alt.X("rows:Q", title="rows", axis=alt.Axis(tickCount=4, format="~s"))
    bars = base.mark_bar(color=LOSS, opacity=0.8, height=16).encode(x=x, tooltip=tooltip)
    return bars.properties(width=WIDTH, height=ROW * len(pairs), title=panel_title("the most frequent mistakes"))
