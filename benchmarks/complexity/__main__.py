"""How the cost of an example grows, beside what the docstrings say; 1 if a learner is above its own.

    python -m benchmarks.complexity [LEARNER ...] [--plot FILE.png|svg]

One of non-zeros, tasks (K) and features (d) varies, the others stay at a base (30, 10 and 1,000, for the curve of
non-zeros 10,000). Times are processor time of the fastest of three passes over the same rows by a learner that has gone
through them once before: the steady cost, without the page faults of memory that is touched for the first time. There
are at least as many rows as tasks, and where there is time more than the caches hold. Labels are tossed for every pass:
nothing can be learned, so that learners err, and move, as often at one end of a curve as at the other.

The exponent printed is the slope on log-log axes, by least squares, over the last decade: before it the fixed cost of
a row, 0.1 to 0.3 us, hides the growth. For K and d it is the smaller of the slopes over the last decade and the last
two: where the model leaves a cache an example pays for more misses, which makes one of them steep, but real growth
makes both. A curve ends early where the state would take more than 2 GB (m) or a pass more than 5 s (t).

ABOVE: an exponent exceeds the documented one by more than 0.25 (a learner that does the same work for every row still
pays for misses, from 1 MB to 1 GB up to a power of 0.2), or the second half of a stream takes longer than the first by
the same measure.
"""

import argparse
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.complexity.cases import CASES, Case, audit, learner_of
from benchmarks.complexity.curves import Curve, Measured, measure
from benchmarks.timing import machine
from shoal.cli.commands.learners import learner_kinds

WIDTHS = {"nnz": 9, "tasks": 11, "features": 14}  # of how far a curve went
HEAD = (
    f"{'learner':29}{'us a row':>9}{'nnz^':>6} {'to':<9}{'K^':>6} {'to':<11}{'d^':>6} {'to':<14}later rows  docstring"
)


def ended(curve: Curve, width: int) -> str:
    """Exponent of a curve, and how far it went."""
    to = f"{curve.sizes[-1]:,} {curve.ended_by[:1]}" if curve.sizes else "-"
    return f"{curve.exponent():>6.2f} {to:<{width}}"


def line(name: str, case: Case, found: Measured) -> str:
    """A row of the table."""
    curves = "".join(ended(found.curves[axis], width) for axis, width in WIDTHS.items())
    said = ", ".join(part for part in (case.growth.name, case.note) if part)
    above = "  ABOVE" if found.above(case.growth) else ""
    return f"{name:29}{found.base * 1e6:>9.2f}{curves}{found.later:>9.2f}x  {said}{above}"


def main() -> int:
    """Print the table, draw the picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.complexity", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="LEARNER", help="default: all")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the curves as a picture, .png or .svg")
    options = parser.parse_args()
    public = set(learner_kinds())
    if said := audit(public):
        parser.error("; ".join(said))
    if unknown := set(options.names) - public:
        parser.error(f"there is no online learner {unknown.pop()!r}")
    print(f"{machine()}\n\n{HEAD}")
    found = {}
    with threadpool_limits(1):  # of BLAS, whose threads cost small matrices more than they save
        for name, case in CASES.items():
            if not options.names or learner_of(name) in options.names:
                found[name] = measure(case)
                print(line(name, case, found[name]), flush=True)
    if options.plot:
        from benchmarks.complexity.picture import figure

        figure(found).save(options.plot)
    return int(any(measured.above(CASES[name].growth) for name, measured in found.items()))


if __name__ == "__main__":
    sys.exit(main())
