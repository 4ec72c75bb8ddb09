"""Claims of Yang, Li (WWW 2020); only the supplement is public."""

from collections.abc import Iterator

import numpy as np

from shoal.papers.by_paper.yang_li import ALL, AT_RANDOM, BY_MARGIN, LINES, THE_RULE
from shoal.papers.claims import rules
from shoal.papers.claims.claim import Case, Claim, Number
from shoal.papers.claims.evidence import Difference, Evidence
from shoal.theory.local_global_gaussian import log_determinant

QUERIES, BOUND = "yang_li/queries", "theory/yang_li"
JUDGED = {"MHC-I": "error", "spam": "error", "landmine": "auc"}  # 6 % of landmine's labels are positive: no error rates
BUDGETS = (40.0, 75.0)  # per cent of labels, at most


def few_labels(e: Evidence) -> Iterator[Case]:
    """The rule within a budget is not worse than all labels by more than two standard errors."""
    for data, metric in JUDGED.items():
        for budget in BUDGETS:
            asked = {name: e.mean(QUERIES, name, data, "asked") for name in LINES[THE_RULE]}
            within = [name for name, share in asked.items() if share <= budget] or [min(asked, key=lambda n: asked[n])]
            name = max(within, key=lambda n: asked[n])
            loss: Difference = e.gain(QUERIES, ALL, name, data, metric)
            form = e.metric(QUERIES, metric).form
            yield Case(
                f"{data}, at most {budget:g} % of the labels",
                not loss.above and asked[name] <= budget,
                Number(f"{asked[name]:.0f} % of the labels", e.mean(QUERIES, name, data, metric), form),
                Number("all labels", e.mean(QUERIES, ALL, data, metric), form),
            )


def beats_others(e: Evidence) -> Iterator[Case]:
    """At the shares that the rule asks for, against the line through the other's points; means over those shares."""
    for data, metric in JUDGED.items():
        better, form = e.metric(QUERIES, metric).better, e.metric(QUERIES, metric).form
        for other in (AT_RANDOM, BY_MARGIN):
            mine, theirs = _line(e, data, metric, THE_RULE), _line(e, data, metric, other)
            inside = [p for p in mine if theirs[0][0] <= p[0] <= theirs[-1][0]] or mine
            rule = float(np.mean([value for _, value in inside]))
            xs, ys = zip(*theirs, strict=True)
            beside = float(np.interp([share for share, _ in inside], xs, ys).mean())
            yield Case(
                f"{data}, {other}",
                better * (rule - beside) > 0,
                Number("rule", rule, form),
                Number(other, beside, form),
            )


def _line(e: Evidence, data: str, metric: str, name: str) -> list[tuple[float, float]]:
    return sorted((e.mean(QUERIES, n, data, "asked"), e.mean(QUERIES, n, data, metric)) for n in LINES[name])


def bounded(e: Evidence) -> Iterator[Case]:
    """The corrected bound holds; the printed determinant is smaller than the real one."""
    yield rules.unbroken(e, BOUND, "hinge", "made")
    rows = 100
    real, printed = log_determinant(np.eye(rows), 1.0), float(np.log(1 + rows))
    yield Case(
        f"as printed, {rows} orthogonal rows",
        real <= printed,
        Number("ln det", real, ".1f"),
        Number("printed ln(1 + KT)", printed, ".1f"),
    )


CLAIMS = (
    Claim(
        "yang_li-1", "few labels learn as well as all", "Theorem 2", "In active learning setting with query/update "
        "decision [the rule asks for the labels that matter]",
        "With at most 40 %, and with at most 75 % of the labels the rule errs no more than with all.", few_labels,
        QUERIES,
    ),
    Claim(
        "yang_li-2", "the rule beats random asking, and its confidence counts", "proof of Theorem 2",
        "[the rule asks by the margin less the uncertainty of the model]",
        "At the same share of labels the rule errs less than random asking, and than the margin alone.", beats_others,
        QUERIES,
        remark="On landmine, where few rows are positive, AUC is compared; there the margin alone does as well.",
    ),
    Claim(
        "yang_li-3", "regret bound", "Theorem 1", "[Regret <= 1/2 sqrt(lambda) D(mu) sqrt(Tr(...) log(1 + KT))]",
        "The bound holds, as corrected in shoal.theory and as printed.", bounded, BOUND,
    ),
)  # fmt: skip
