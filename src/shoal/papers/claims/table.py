"""All claims, judged, and as lines of text."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from shoal.papers.claims.claim import NOT_RUN, UNTESTABLE, VERDICTS, Claim, Judgement, judge
from shoal.papers.claims.evidence import Evidence, as_published
from shoal.papers.experiment import Experiment
from shoal.papers.outcome import Outcome

PAPERS = ("osmtl", "romco", "sparse_mtl", "yang_li", "cavallanti")
SIGNS = dict(zip(VERDICTS, "✓◐✗?…", strict=True))  # so that no verdict is told by its color alone
ITS_OWN, BEFORE = "its own numbers say", "the rule was changed after runs had been seen, and said before"
OTHER_ROWS = "with errors corrected for splits that overlap"


class Line(NamedTuple):
    """A claim, judged by our runs and by the paper's own printed numbers."""

    ours: Judgement
    theirs: str  # the same rule on what the paper prints; empty where it prints too little

    @property
    def claim(self) -> Claim:
        """The claim that is judged."""
        return self.ours.claim


def claims() -> tuple[Claim, ...]:
    """The claims of all papers, in their order."""
    return tuple(claim for paper in PAPERS for claim in import_module(f"shoal.papers.claims.{paper}").CLAIMS)


def judged(outcomes: Iterable[Outcome], experiments: Mapping[str, Experiment]) -> list[Line]:
    """Every claim, by these runs."""
    ours, theirs = Evidence(outcomes), as_published(experiments)
    found = []
    for claim in claims():
        printed = judge(claim, theirs)
        found.append(Line(judge(claim, ours), "" if printed.verdict in (NOT_RUN, UNTESTABLE) else printed.verdict))
    return found


def summary(lines: Iterable[Line]) -> str:
    """Counts of claims by verdict."""
    verdicts = [line.ours.verdict for line in lines]
    counts = [(verdicts.count(verdict), verdict) for verdict in VERDICTS]
    parts = [f"{n} {verdict if n == 1 else _plural(verdict)}" for n, verdict in counts if n]
    return f"{len(verdicts)} claims: {', '.join(parts)}."


def _plural(verdict: str) -> str:
    return verdict.replace("holds", "hold").replace("does not", "do not")


def two_numbers(judgement: Judgement) -> str:
    """The numbers of the deciding case, or the reason why there are none."""
    if judgement.missing:
        return f"shoal reproduce {judgement.missing}"
    case = judgement.telling
    return judgement.claim.untestable if case is None else f"{case.where}: {case.first}, {case.second}"


def conditions(judgement: Judgement) -> str:
    """Where a claim holds and where not, in words."""
    good, bad = judgement.where(True), judgement.where(False)
    if not good or not bad:
        return ""
    return f"holds in {len(good)} of {len(judgement.cases)} cases: {'; '.join(good)}. Not: {'; '.join(bad)}."


def as_text(lines: Iterable[Line], width: int = 118) -> Iterator[str]:
    """The table that the program prints."""
    known = list(lines)
    wide = max(len(line.claim.id) for line in known)
    for line in known:
        claim, judgement = line.claim, line.ours
        yield f"{claim.id:<{wide}}  {SIGNS[judgement.verdict]} {judgement.verdict:<23} {claim.title}"
        details = [two_numbers(judgement), f"see {claim.link}"]
        if claim.before:
            details.append(f"{BEFORE}: {claim.before}")
        if judgement.for_other_rows not in ("", judgement.verdict):
            details.append(f"{OTHER_ROWS}: {judgement.for_other_rows}")
        if line.theirs and line.theirs != judgement.verdict:
            details.append(f"{ITS_OWN}: {line.theirs}")
        yield from textwrap.wrap(
            "; ".join(details), width, initial_indent=" " * (wide + 4), subsequent_indent=" " * (wide + 4)
        )
    yield ""
    yield summary(known)
    yield "A claim holds if all its cases do, under conditions if half of them or more do; see docs/reproduction.html."
