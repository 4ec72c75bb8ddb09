"""Claims of Cavallanti, Cesa-Bianchi, Gentile (JMLR 2010)."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from shoal.papers.by_paper.cavallanti import COUNTS, LEVELS, SEPARATED
from shoal.papers.claims import rules
from shoal.papers.claims.claim import CONDITIONS, HOLDS, Case, Claim, Number, shown
from shoal.papers.claims.evidence import Evidence, NotRunError
from shoal.papers.errors import one_sample, unpaired

ONE, ALL, SPAM, GRAPH, EQUAL, BOUNDS = (
    "cavallanti/figure5",
    "cavallanti/figure6",
    "cavallanti/table3",
    "cavallanti/graph",
    "cavallanti/equal",
    ("theory/cavallanti", "theory/cavallanti-shared"),
)
CHOICES, SHARED, NORMS = ("random", "adversarial"), ("b = 1", "b = 4", "b = 8", "b = 16"), range(2, 6)
FALLS, A_QUARTER = -0.9, 0.75
NO_WORSE = rules.EQUAL["error"] / 100  # here errors are shares
NEARLY_FOUR = 3.5  # what rounds to four
PROPORTIONAL = 0.9  # the exponent of K from which a gain is called proportional to it


def _changes(e: Evidence, experiment: str, name: str, base: str, choice: str) -> list[float]:
    """Error less the baseline's, D1 to D8."""
    data = [f"D{level} {choice}" for level in LEVELS]
    return [e.mean(experiment, name, d, "error") - e.mean(experiment, base, d, "error") for d in data]


def gains_grow(e: Evidence) -> Iterator[Case]:
    """The change against b = 0 falls from D1 to D8, and more for larger b."""
    for choice in CHOICES:
        changes = {name: _changes(e, ONE, name, "b = 0", choice) for name in SHARED}
        for name, values in changes.items():
            yield rules.trend(f"{choice}, {name}", LEVELS, values, FALLS)
        falls = [values[-1] - values[0] for values in changes.values()]
        faster = all(a > b for a, b in pairwise(falls))
        yield Case(
            f"{choice}, faster for larger b",
            faster,
            Number("fall at b = 1", falls[0], "+.3f"),
            Number("fall at b = 16", falls[-1], "+.3f"),
        )


def one_loses_on_d1(e: Evidence) -> Iterator[Case]:
    """b = 1 against b = 0 on each of D1 to D8."""
    for choice in CHOICES:
        for level in LEVELS:
            learner, other = ("b = 0", "b = 1") if level == 1 else ("b = 1", "b = 0")
            yield rules.beats(e, ONE, f"D{level} {choice}", "error", [learner], [other])


def norms_never_lose(e: Evidence) -> Iterator[Case]:
    """On D1 no worse than p = 1, and on D8 ahead by more."""
    for p in NORMS:
        yield rules.no_worse(e, ALL, "D1 all", "error", f"p = {p}", "p = 1", NO_WORSE, f"D1, p = {p}")
        first, last = (
            e.values(ALL, "p = 1", f"D{level} all", "error") - e.values(ALL, f"p = {p}", f"D{level} all", "error")
            for level in (LEVELS[0], LEVELS[-1])
        )
        numbers = Number("gap on D8", last.mean(), ".4f"), Number("gap on D1", first.mean(), ".4f")
        yield shown(f"D8 against D1, p = {p}", unpaired(last, first), *numbers)


def errors_fall(e: Evidence) -> Iterator[Case]:
    """The error of p > 1 on D1 less that on D8."""
    for p in NORMS:
        numbers = (Number(f"D{level}", e.mean(ALL, f"p = {p}", f"D{level} all", "error"), ".4f") for level in (1, 8))
        yield shown(f"p = {p}", e.gap(ALL, f"p = {p}", ("D1 all", "D8 all"), "error"), *numbers)


def quarter_on_spam(e: Evidence) -> Iterator[Case]:
    """p = 4 is best and errs less than three quarters of p = 1."""
    yield rules.ratio(e, SPAM, "spam", "test", "p = 4", "p = 1", most=A_QUARTER, where="more than a quarter less")
    second = e.best(SPAM, [f"p = {p}" for p in (1, 2, 3, 5)], "spam", "test")
    first, other = (rules.number(e, SPAM, name, "spam", "test") for name in ("p = 4", second))
    yield Case("p = 4 is best", first.value <= other.value, first, other)


def both_errors_fall(e: Evidence) -> Iterator[Case]:
    """Every p > 1 against p = 1, in training and in test errors."""
    for metric in ("test", "training"):
        for p in NORMS:
            yield rules.beats(e, SPAM, "spam", metric, [f"p = {p}"], ["p = 1"], f"{metric} error, p = {p}")


def four_points(e: Evidence) -> Iterator[Case]:
    """p = 4 against p = 1 in per cent of rows, and with a deviation of each taken from the gap."""
    first, second = (rules.number(e, SPAM, name, "spam", "test") for name in ("p = 4", "p = 1"))
    gain = e.gain(SPAM, "p = 4", "p = 1", "spam", "test")
    yield shown(f"more than {NEARLY_FOUR:g} % of rows", gain.less(NEARLY_FOUR), first, second)
    spreads = [
        e.published(SPAM, name, "spam", "test")[1] or 0.0
        if e.printed
        else float(e.values(SPAM, name, "spam", "test").std(ddof=1))
        for name in ("p = 4", "p = 1")
    ]
    high, low = first.value + spreads[0], second.value - spreads[1]
    numbers = Number("p = 4 and its deviation", high, ".1f"), Number("p = 1 less its own", low, ".1f")
    yield Case("beyond the deviations", high < low, *numbers)


def same_side(e: Evidence) -> Iterator[Case]:
    """How often both errors of a shuffle lie on the same side of their means."""
    if e.printed:
        raise NotRunError(SPAM)
    base = e.values(SPAM, "p = 1", "spam", "test")
    for p in NORMS:
        errors = e.values(SPAM, f"p = {p}", "spam", "test")
        same = ((errors > errors.mean()) == (base > base.mean())).astype(float)
        numbers = Number("% of shuffles", 100 * same.mean(), ".0f"), Number("asked: above", 50.0, ".0f")
        yield shown(f"p = {p}", one_sample(same - 0.5), *numbers)


def factor_k(e: Evidence) -> Iterator[Case]:
    """The gain over independent learners as a power of K: above 0, and near 1."""
    for kind in ("", SEPARATED):
        for name in ("pairwise", "2p-norm matrix"):
            data = [f"{K} tasks{kind}" for K in COUNTS]
            alone, shared = (
                np.array([e.values(EQUAL, learner, d, "error") for d in data]) for learner in ("independent", name)
            )
            slopes = np.polyfit(np.log(COUNTS), np.log(alone / shared), 1)[0]
            gain = Number(f"gain with {COUNTS[-1]} tasks", alone[-1].mean() / shared[-1].mean(), ".1f")
            for what, least in (("grows", 0.0), ("is proportional", PROPORTIONAL)):
                power = Number(f"as K to the {slopes.mean():.2f}, asked: above", least, "g")
                yield shown(f"{name}{kind}, {what}", one_sample(slopes - least), gain, power)


def graph_helps(e: Evidence) -> Iterator[Case]:
    """The right graph against each other relation."""
    others = rules.mains(e, GRAPH, without=("the graph",))
    yield from rules.beats_each(e, GRAPH, "ring of cliques", "error", ["the graph"], others)


def bounded(e: Evidence) -> Iterator[Case]:
    """Every learner and relation on both streams."""
    for experiment in BOUNDS:
        for data in e.experiment(experiment).data:
            for name in rules.mains(e, experiment):
                yield rules.unbroken(e, experiment, name, data.name)


CLAIMS = (
    Claim(
        "cavallanti-1", "gains grow as tasks become alike", "section 7, Figure 5",
        "multitask algorithms get more and more competitive as tasks get closer ... this advantage is higher as we "
        "increase the value of b",
        "The error less that of b = 0 falls from D1 to D8, for every b, and faster for larger b.", gains_grow, ONE,
        no_error=rules.AN_ORDER,
    ),
    Claim(
        "cavallanti-2", "b = 1 loses only on D1", "section 7, below Figure 5",
        "overall better performance than the multitask baseline b = 0, with a higher cumulative error only on the "
        "first data set",
        "b = 1 errs more than b = 0 on D1, and less on D2 to D8.", one_loses_on_d1, ONE,
    ),
    Claim(
        "cavallanti-3", "the 2p-norm never loses", "section 7, Figure 6",
        "even in D1 the performance of the 2p-norm matrix multitask Perceptron algorithm is no worse than the one "
        "achieved by the baseline",
        f"For p = 2 to 5 the error on D1 is not {rules.EQUAL['error']:g} % above that of p = 1, and the gap on D8 is "
        "larger than on D1.", norms_never_lose, ALL,
        revised="before, a gap that widens at nearly every step was asked, of which the paper says nothing.",
        before=CONDITIONS,
    ),
    Claim(
        "cavallanti-4", "a quarter fewer errors on spam", "section 7, Table 3",
        "the best performance is achieved when p is set to 4 ... an improvement of more than 25% relative to the "
        "baseline p = 1",
        "p = 4 has the lowest test error, more than 25 % below that of p = 1, in all decimals.", quarter_on_spam, SPAM,
        remark="In the paper it is 27.6 %. That p = 4 is best is an order of means.",
        revised="before, 25 % was enough, in the one decimal that the paper prints; before that, the rule was as now.",
        before=HOLDS, no_error=rules.AN_ORDER,
    ),
    Claim(
        "cavallanti-5", "up to K times fewer mistakes on equal tasks", "abstract; Corollary 3; Remark 10",
        "our algorithms are shown to improve on their baselines by a factor proportional to the number of tasks",
        "On tasks that are the same, independent learners err more often by a factor that grows as a power of K, with "
        f"an exponent above {PROPORTIONAL:g}.",
        factor_k, EQUAL,
        remark="The bounds are proportional, for tasks that are the same and separable with a margin; in one of the "
        "streams no row lies near the plane.",
        revised="before, any growth of the gain up to K was enough, without an error.", before=HOLDS,
    ),
    Claim(
        "cavallanti-6", "the right graph helps", "section 3.3",
        "We could also pick the interaction matrix A so as to encode prior knowledge about tasks",
        "With the graph that the tasks were drawn from, fewer errors than with any other relation.", graph_helps, GRAPH,
        remark="The paper has no experiment; data and graph are made.",
    ),
    Claim(
        "cavallanti-7", "training and test errors fall on spam", "section 7, Table 3",
        "the 2p-norm matrix multitask algorithm exploits underlying latent relations and manages to achieve a "
        "significant decrease in both the training and test errors",
        "Every p from 2 to 5 has a lower training error and a lower test error than p = 1.", both_errors_fall, SPAM,
    ),
    Claim(
        "cavallanti-8", "fewer wrong labels as tasks get closer", "section 7, Figure 6",
        "the more the tasks get closer to each other the less is the number of wrongly predicted labels output by the "
        "2p-norm matrix multitask Perceptron algorithm",
        "For p = 2 to 5 the error on D8 is below that on D1.", errors_fall, ALL,
        remark="The paper draws differences to p = 1 only, whose own error it prints: on D8 higher than on D1.",
    ),
    Claim(
        "cavallanti-9", "p = 1 and p > 1 deviate to the same side", "section 7, Table 3",
        "in most runs, the deviation from the average tended to be the on the same side for both p = 1 and p > 1",
        "In more than half of the shuffles both errors lie on the same side of their means.", same_side, SPAM,
        remark="The paper says it of folds; ours are means over the ten folds of a shuffle.",
    ),
    Claim(
        "cavallanti-10", "mistake bounds", "Theorems 1, 6, 8 and 9, Remark 12",
        "[the number of mistakes, or the cumulative shared loss, is at most the bound for every comparator]",
        "What is observed never exceeds the bound of the best comparator in hindsight.", bounded, BOUNDS[0],
        remark="Remark 12 as corrected in shoal.theory.", no_error=rules.NEVER,
    ),
    Claim(
        "cavallanti-12", "nearly four points fewer errors on spam", "section 7, Table 3",
        "nearly a 4.0% decrease in absolute terms ... the advantage ... is still significant even when the standard "
        "deviation is factored in",
        f"With p = 4 more than {NEARLY_FOUR:g} % of the rows less are wrong than with p = 1, and with the standard "
        "deviations on either side still fewer.", four_points, SPAM,
        remark="Our deviations are over means of ten folds; the paper's are as large as those of single folds.",
        no_error="the second case compares deviations, as the paper does",
    ),
    Claim(
        "cavallanti-13", "the cost depends little on the number of tasks", "section 1",
        "in most cases, the cost of running multitask algorithms has a mild dependence on the number K of tasks",
        "The time of a row hardly grows with K.", rules.nothing, EQUAL,
        untestable="the paper measures no time, and no experiment here times streams that differ in K alone",
    ),
    Claim(
        "cavallanti-11", "three runs agree within 0.002", "section 7, footnote 3",
        "The observed results were within a 0.002 interval of the plotted values in all 3 runs",
        "With a task chosen at random, errors of all shuffles lie within 0.002 of their mean.", rules.nothing, ONE,
        untestable="the spread shrinks with the number of stories, of which we have 17 %",
    ),
)  # fmt: skip
