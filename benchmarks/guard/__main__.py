"""Compare every public learner with the numbers it gave so far: `python -m benchmarks.guard [--cost] [NAME ...]`.

Error and loss must agree to 1e-6 (relative), instructions a row to 5 %. `--update REASON` writes the new numbers, and
why they changed, to numbers.json, which is committed with the change. `--cost` needs valgrind and some minutes.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.guard.processor import compile_for_haswell, remove_stale_code

KNOWN = Path(__file__).with_name("numbers.json")
EXACT, COST = 1e-6, 0.05
TIMES = 3  # a count that differs is made so often


def read() -> dict[str, Any]:
    """What is committed."""
    known: dict[str, Any] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return known


def differences(name: str, found: dict[str, float], known: dict[str, float]) -> list[str]:
    """What is not as it was, a sentence each."""
    said = []
    for measure, value in found.items():
        tolerance = COST if measure == "instructions" else EXACT
        was = known.get(measure)
        if was is None:
            said.append(f"{name}: {measure} is {value:.9g}, nothing known so far")
        elif abs(value - was) > tolerance * max(abs(was), tolerance):
            by = f" ({value / was - 1:+.2%})" if was else ""
            said.append(f"{name}: {measure} is {value:.9g}, was {was:.9g}{by}")
    return said


def costs(names: list[str], known: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Instructions of each learner; of those that differ the least of several counts, with everything elsewhere."""
    from benchmarks.guard.cost import instructions

    found: dict[str, dict[str, float]] = {}
    differing = names
    for elsewhere in range(TIMES):
        print(f"counting the instructions of all learners, pass {elsewhere + 1} of at most {TIMES}", file=sys.stderr)
        counts = instructions(elsewhere)
        for name in differing:
            least = min(counts[name], found.get(name, {}).get("instructions", counts[name]))
            found[name] = {"instructions": least}
        differing = [name for name in names if differences(name, found[name], known.get(name, {}))]
        if not differing:
            break
    return found


def main() -> int:
    """Print what differs; 1 if something does and is not to be written."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard", description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="learners; default: all")
    parser.add_argument("--cost", action="store_true", help="count instructions too, under valgrind")
    parser.add_argument("--update", metavar="REASON", help="write the numbers, and why they changed")
    options = parser.parse_args()
    compile_for_haswell()
    from benchmarks.guard.workloads import BATCH, ONLINE, numbers

    remove_stale_code()
    names = options.names or [*ONLINE, *BATCH]
    if unknown := set(names) - {*ONLINE, *BATCH}:
        parser.error(f"there is no workload {unknown.pop()!r}")
    known, found = read(), {name: numbers(name) for name in names}
    if options.cost:
        for name, cost in costs(names, known["learners"]).items():
            found[name] |= cost
    differing = {name: differences(name, found[name], known["learners"].get(name, {})) for name in names}
    said = [sentence for sentences in differing.values() for sentence in sentences]
    print("\n".join(said) or f"{len(names)} learners, as they were")
    if options.update and said:
        for name in filter(differing.get, names):  # not the others, or costs would creep up within what is tolerated
            known["learners"][name] = known["learners"].get(name, {}) | found[name]
        known["changes"].append({"reason": options.update, "what": said})
        KNOWN.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        print(f"written to {KNOWN.name}")
        return 0
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
