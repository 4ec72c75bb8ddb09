"""Claims of Yang, Li (WWW 2020); only the supplement is public."""

from collections.abc import Iterator

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.papers.by_paper.yang_li import ALL, AT_RANDOM, BY_MARGIN, LINES, SIZES, THE_RULE
from shoal.papers.claims import rules
from shoal.papers.claims.claim import CONDITIONS, Case, Claim, Number, shown
from shoal.papers.claims.evidence import Evidence
from shoal.papers.errors import Difference, one_sample
from shoal.theory.local_global_gaussian import log_determinant

QUERIES, TIMES, BOUND = "yang_li/queries", "yang_li/time", "theory/yang_li"
JUDGED = {"MHC-I": "error", "spam": "error", "landmine": "auc"}  # 6 % of landmine's labels are positive: no error rates
TOO_MANY = Difference(-np.inf, 0.0)  # labels: it fails, whatever they give
BUDGETS = (40.0, 75.0)  # per cent of labels, at most


def few_labels(e: Evidence) -> Iterator[Case]:
    """The rule at the largest share within each budget, against all labels; a share that serves both counts once."""
    for data, metric in JUDGED.items():
        asked = {name: e.mean(QUERIES, name, data, "asked") for name in LINES[THE_RULE]}
        within = [[name for name, share in asked.items() if share <= budget] for budget in BUDGETS]
        least = min(asked, key=lambda name: asked[name])
        for name in dict.fromkeys(max(names or [least], key=lambda name: asked[name]) for names in within):
            where = f"{data}, {asked[name]:.0f} % of the labels"
            case = rules.no_worse(e, QUERIES, data, metric, name, ALL, rules.EQUAL[metric], where)
            yield case if asked[name] <= max(BUDGETS) else case._replace(holds=False, difference=TOO_MANY)


def beats_others(e: Evidence) -> Iterator[Case]:
    """At each share that the rule asks for, against the line through the other's points, shuffle by shuffle."""
    for data, metric in JUDGED.items():
        better, form = e.metric(QUERIES, metric).better, e.metric(QUERIES, metric).form
        for other in (AT_RANDOM, BY_MARGIN):
            shares, values = _line(e, data, metric, other)
            asked = {name: e.mean(QUERIES, name, data, "asked") for name in LINES[THE_RULE]}
            inside = {name: share for name, share in asked.items() if shares[0] <= share <= shares[-1]}
            for name, share in (inside or asked).items():
                rule = e.values(QUERIES, name, data, metric)
                beside = np.array([np.interp(share, shares, column) for column in values.T])
                numbers = Number("rule", rule.mean(), form), Number(other, beside.mean(), form)
                where = f"{data}, {other}, {share:.0f} % of the labels"
                yield shown(where, one_sample(better * (rule - beside)), *numbers)


def _line(e: Evidence, data: str, metric: str, name: str) -> tuple[FloatArray, FloatArray]:
    """Mean shares that a line's points ask for, in order, and their values, (points, shuffles)."""
    shares = np.array([e.mean(QUERIES, point, data, "asked") for point in LINES[name]])
    values = np.array([e.values(QUERIES, point, data, metric) for point in LINES[name]])
    order = np.argsort(shares)
    return shares[order], values[order]


def quadratic(e: Evidence) -> Iterator[Case]:
    """The slope of log time over log D, with full covariances, from the median D on, where D decides."""
    sizes = SIZES[len(SIZES) // 2 :]
    logs = np.log([e.values(TIMES, f"full covariance, D = {size}", "MHC-I", "seconds") for size in sizes])
    slopes = np.polyfit(np.log(sizes), logs, 1)[0]
    numbers = Number("time grows as D to the", slopes.mean(), ".2f"), Number("asked: below", 2.0, ".2f")
    yield shown("MHC-I", one_sample(2.0 - slopes), *numbers)


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
        f"With at most {BUDGETS[0]:g} %, and with at most {BUDGETS[1]:g} % of the labels the rule loses less than "
        f"{rules.EQUAL['error']:g} % of error, on landmine less than {rules.EQUAL['auc']:g} of AUC, of all labels.",
        few_labels, QUERIES,
        revised="before, a loss within two standard errors counted as none, so that noise passed; and landmine's one "
        "share counted for both budgets.", before=CONDITIONS,
    ),
    Claim(
        "yang_li-2", "the rule beats random asking, and its confidence counts", "proof of Theorem 2",
        "[the rule asks by the margin less the uncertainty of the model]",
        "At each share of labels the rule errs less than random asking, and than the margin alone.", beats_others,
        QUERIES, remark="On landmine, where few rows are positive, AUC is compared.",
        revised="before, means over all shares were compared, without an error.", before=CONDITIONS,
    ),
    Claim(
        "yang_li-3", "regret bound", "Theorem 1", "[Regret <= 1/2 sqrt(lambda) D(mu) sqrt(Tr(...) log(1 + KT))]",
        "The bound holds, as corrected in shoal.theory and as printed.", bounded, BOUND, no_error=rules.NEVER,
    ),
    Claim(
        "yang_li-4", "an update costs D^2", "proof of Lemma 3",
        "can be updated efficiently with time complexity O(D^2)",
        "The time of a pass grows more slowly than the square of the number of features D.", quadratic, TIMES,
    ),
    Claim(
        "yang_li-5", "bound on the mistakes of the rule", "Theorem 2",
        "[E[M] <= sum of E[loss] + 1/(4 h eps) sum of E[variance] + eps/h E[max |mu_t - h mu|^2 Tr(...)]]",
        "The expected mistakes of the rule that asks for labels stay below the bound.", rules.nothing, QUERIES,
        untestable="the bound is an expectation over queries with a trace as in Theorem 1, which has to be corrected "
        "first; shoal.theory has no such bound",
    ),
)  # fmt: skip
