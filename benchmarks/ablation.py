"""What each part of HedgedSharing is worth: `python -m benchmarks.ablation [STREAM ...] [--markdown]`.

Each line leaves one part out; a cell is what that costs: log-loss more than the whole learner's, or RMSE in percent.
Positive numbers say that the part helps. `--experts` leaves out each of the experts by itself, `--constants`
gives each constant a smaller and a larger value and prints what that costs in percent. The change is made before numba
compiles, in a process with an empty cache of its own: half a minute a line, and the streams. departures has the flights
in the order in which they left, and drifts. All streams but flights, departures and delay need SHOAL_DATA.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.printing import print_head, print_row

LABELS = ("flights", "departures", "ecml_spam", "enron", "landmine", "mhc", "diamonds", "randhie", "segment", "yeast")
TARGETS = ("school", "delay", "conjoint")
ROOM, FULL_MATRIX = "shoal.online.hedged_sharing", "shoal.online.kalman_filters.full_matrix"
HUGE = 1e300


def replace(name: str, value: Any, *modules: str) -> None:
    """Give a constant or a function another value in modules of the room, or in others by their whole names."""
    for module in modules:
        found = importlib.import_module(module if "." in module else f"{ROOM}.{module}")
        if not hasattr(found, name):
            raise AttributeError(f"{module} has no {name}: the ablation names what is no longer there")
        setattr(found, name, value)


def without_experts(leave_out: Callable[[Any], bool]) -> None:
    """All of these sleep on every row."""
    from shoal.engine.compile import kernel
    from shoal.online.hedged_sharing.experts import EXPERTS, taking_part

    there = np.array([not leave_out(expert) for expert in EXPERTS], np.float64)

    @kernel(entry=True)
    def those_left(sharing: int, interactions: int, trees: bool, regression: bool, out: Any) -> float:
        taking_part(sharing, interactions, trees, regression, out)
        n = 0.0
        for e in range(len(out)):
            out[e] *= there[e]
            n += out[e]
        return n

    replace("taking_part", those_left, "experts", "row", "state", "explaining")


def with_settings(**changed: Any) -> None:
    """Other constants of the recipe."""
    from shoal.online.hedged_sharing.row import Settings

    replace("Settings", partial(Settings, **changed), "algorithm")


def without_doubt() -> None:
    """Every label says something about its row."""
    from shoal.engine.compile import kernel

    @kernel(entry=True)
    def none(surprises: Any) -> float:
        return float(0.0 * surprises[0])

    replace("doubt", none, "mixing", "row", "explaining")


def without_clipping() -> None:
    """Features, targets and errors are learned as they come."""
    replace("OUTLIER", HUGE, "scaling")
    replace("ERROR_OUTLIER", HUGE, "scaling")
    replace("NEAR", HUGE, "row")


def without_caution() -> None:
    """Both regressions of the second mixing are the same."""
    replace("VARIANCES", (1.0, 1.0), "state")
    replace("DRIFTS", (1e-3, 1e-3), "row")


def without_band() -> None:
    """Features keep the scale in which they come."""
    replace("BAND", HUGE, "scaling")


def _rule(*rules: str) -> Callable[[], None]:
    return lambda: without_experts(lambda expert: expert.name.split("-")[0] in rules)


PARTS: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "experts: second order, diagonal": _rule("newton"),
    "experts: AdaGrad": _rule("adagrad"),
    "experts: constant steps": _rule("constant"),
    "experts: full matrices": _rule("full"),
    "experts: on crossed rows": _rule("crossed"),
    "experts: forgetting": lambda: without_experts(lambda expert: "forgetting" in expert.name),
    "experts: levels of tasks": _rule("levels"),
    "experts: mixed effects": _rule("effects"),
    "experts: trees": _rule("trees"),
    "experts: pooled": lambda: without_experts(lambda expert: "pooled" in expert.name),
    "experts: together": lambda: without_experts(lambda expert: "together" in expert.name),
    "experts: own": lambda: without_experts(lambda expert: "own" in expert.name),
    "second mixing": lambda: with_settings(half_stack=HUGE),
    "mixture of all tasks for new tasks": lambda: with_settings(half_stack=1e-9),
    "shrinkage in young tasks": lambda: with_settings(half_own=1e-9),
    "fixed share": lambda: replace("SHARE", 0.0, "row"),
    "cautious regression": without_caution,
    "doubt in labels": without_doubt,
    "clipping": without_clipping,
    "features in a band": without_band,
}


def _constant(name: str, value: Any, *modules: str) -> Callable[[], None]:
    return lambda: replace(name, value, *modules)


# Name in the table: the constant and its modules, or a setting and none; a smaller and a larger value.
CONSTANTS: dict[str, tuple[str, tuple[str, ...], Any, Any]] = {
    "constant of a row (0.3)": ("CONSTANT", ("scaling", "explaining"), 0.1, 1.0),
    "band of features (3)": ("BAND", ("scaling", "explaining"), 1.5, 10.0),
    "fixed share (0.005)": ("SHARE", ("row",), 0.002, 0.02),
    "share of the slow mixture (1e-4)": ("SLOW_SHARE", ("row",), 1e-5, 1e-3),
    "rows of a young task (10)": ("half_own", (), 3.0, 30.0),
    "rows until the second mixing counts half (2.5)": ("half_stack", (), 1.0, 7.5),
    "its least curvature (1e-5)": ("LEAST_CURVATURE", ("row",), 1e-6, 1e-4),
    "prior variance of full matrices (10)": ("PRIOR", (FULL_MATRIX,), 3.0, 30.0),
    "drift of the pooled matrix (0.05)": ("POOLED_DRIFT", ("columns",), 0.01, 0.2),
    "drift of tasks' matrices (1e-5)": ("OWN_DRIFT", ("columns",), 1e-6, 1e-4),
    "clipping beyond deviations² (100)": ("OUTLIER", ("scaling",), 25.0, 400.0),
    "clipping of errors² (49)": ("ERROR_OUTLIER", ("scaling",), 16.0, 100.0),
    "rows that the noise level remembers (300)": ("NOISE_ROWS", ("scaling",), 100.0, 1000.0),
    "values of a recent scale (30)": ("RECENT", ("scaling",), 10.0, 100.0),
    "variances of the regressions (1, 0.1)": ("VARIANCES", ("state",), (0.3, 0.03), (3.0, 0.3)),
    "their drifts (1e-3, 1e-4)": ("DRIFTS", ("row",), (1e-4, 1e-5), (1e-2, 1e-3)),
    "trusts of the third mixing (0.45, 0.45, 0.1)": ("TRUSTS", ("state", "row"), (0.49, 0.49, 0.02), (0.35, 0.35, 0.3)),
}


def constants() -> dict[str, Callable[[], None]]:
    """Each with a smaller and a larger value."""
    found = {"nothing": PARTS["nothing"]}
    for line, (name, modules, *values) in CONSTANTS.items():
        for value in values:
            change = _constant(name, value, *modules) if modules else partial(with_settings, **{name: value})
            found[f"{line}: {value}"] = change
    return found


def experts() -> dict[str, Callable[[], None]]:
    """Each one by itself."""
    from shoal.online.hedged_sharing.experts import EXPERTS

    def one(name: str) -> Callable[[], None]:
        return lambda: without_experts(lambda expert: expert.name == name)

    return {"nothing": PARTS["nothing"], **{expert.name: one(expert.name) for expert in EXPERTS}}


def score(name: str) -> float:
    """Log-loss of the default on a stream of labels, RMSE on one of real targets."""
    from benchmarks import regression, streams, tables
    from shoal import HedgedSharing, HedgedSharingRegressor, TabularClassifier

    if name in TARGETS:
        stream = getattr(regression, name)()
        errors = HedgedSharingRegressor().test_then_train(stream.X, stream.y, stream.task) - stream.y
        return float(np.sqrt(np.mean(errors**2)))
    if name == "departures":
        table = tables.departures()
        X, late = table.drop("late", "delay", *tables.KNOWN_AFTERWARDS), table["late"].to_numpy()
        decisions = TabularClassifier(task="dest").test_then_train(X, late)
        return float(np.logaddexp(0.0, decisions * (1.0 - 2.0 * late)).mean())
    stream = streams.read(name)
    decisions = HedgedSharing().test_then_train(stream.X, stream.y, stream.task)
    return float(np.logaddexp(0.0, -decisions * np.sign(stream.y)).mean())


def scores_without(part: str, names: list[str]) -> dict[str, float]:
    """In a process of its own, whose kernels are compiled anew."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "benchmarks.ablation", "--without", part, *names]
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(found.stdout))


def costs(whole: dict[str, float], without: dict[str, float]) -> list[str]:
    """A cell for each stream."""
    return [
        f"{100.0 * (without[name] / whole[name] - 1.0):+.2f} %"
        if name in TARGETS
        else f"{without[name] - whole[name]:+.4f}"
        for name in whole
    ]


def percents(whole: dict[str, float], without: dict[str, float]) -> list[str]:
    """The mean cost, the least and the most."""
    found = {name: 100.0 * (without[name] / whole[name] - 1.0) for name in whole}
    least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    mean = sum(found.values()) / len(found)
    return [f"{mean:+.2f} %", *(f"{found[name]:+.2f} % ({name})" for name in (least, most))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help=f"some of {', '.join(LABELS + TARGETS)}")
    parser.add_argument("--experts", action="store_true", help="leave out each expert by itself")
    parser.add_argument("--constants", action="store_true", help="other values of each constant")
    parser.add_argument("--markdown", action="store_true", help="a table for a page")
    parser.add_argument("--without", help=argparse.SUPPRESS)  # how the program calls itself
    options = parser.parse_args()
    names = options.streams or [*LABELS, *TARGETS]
    if options.without is not None:
        (PARTS | experts() | constants())[options.without]()
        print(json.dumps({name: score(name) for name in names}))
        return
    parts = experts() if options.experts else constants() if options.constants else PARTS
    whole = scores_without("nothing", names)
    if options.constants:
        print_head("What another value costs", ["mean", "least", "most"], markdown=options.markdown, width=24)
    else:
        print_head("What it costs to leave a part out", names, markdown=options.markdown)
        print_row("the whole", [f"{whole[name]:.4f}" for name in names], markdown=options.markdown)
    for part in parts:
        if part != "nothing":
            without = scores_without(part, names)
            if options.constants:
                print_row(part, percents(whole, without), markdown=options.markdown, width=24)
            else:
                print_row(part, costs(whole, without), markdown=options.markdown)


if __name__ == "__main__":
    main()
