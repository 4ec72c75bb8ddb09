"""A claim of a paper: where it stands, how we read it, and the rule that decides it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoal.evaluation.comparison import holm
from shoal.papers.claims.evidence import Evidence, NotRunError
from shoal.papers.errors import LEVEL, Difference

HOLDS, CONDITIONS, FAILS, UNTESTABLE = ("holds", "holds under conditions", "does not hold", "cannot be tested here")
NOT_RUN = "not run yet"
VERDICTS = (HOLDS, CONDITIONS, FAILS, UNTESTABLE, NOT_RUN)


class Number(NamedTuple):
    """A number that a case rests on."""

    name: str
    value: float
    form: str = ".3f"

    def __str__(self) -> str:
        return f"{self.name} {self.value:{self.form}}"


class Case(NamedTuple):
    """One place where a claim can be looked at: a data set, a pair of learners, a setting.

    With a difference, it holds if that is above 0 beyond chance, corrected for the claim's other differences; without
    one, the rule says whether it holds.
    """

    where: str
    holds: bool
    first: Number
    second: Number
    difference: Difference | None = None
    near: float = 0.0  # without a difference: how near it came to failing, as the share of a bound that is used

    def __str__(self) -> str:
        error = str(self.difference or "")
        return f"{self.where}: {self.first}, {self.second}" + (f" ({error})" if error else "")


def shown(where: str, difference: Difference, first: Number, second: Number) -> Case:
    """A case that a difference decides."""
    return Case(where, difference.above, first, second, difference)


Rule = Callable[[Evidence], Iterable[Case]]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and the rule that decides it.

    Parameters
    ----------
    id : such as "osmtl-3"
    title : a few words
    place : where in the paper
    quote : the paper's words; where it has none, what it shows, in brackets
    reading : what we take it to mean, in one sentence
    rule : function of an `Evidence` that yields cases
    link : the experiment to look at first
    untestable : why nothing here can decide it, if so
    remark : what a reader must know beside the numbers
    revised : what the rule was before, if it was changed after runs had been seen
    before : what that rule had said of those runs
    no_error : why some cases need no error of a difference
    """

    id: str
    title: str
    place: str
    quote: str
    reading: str
    rule: Rule
    link: str
    untestable: str = ""
    remark: str = ""
    revised: str = ""
    before: str = ""
    no_error: str = ""

    @property
    def paper(self) -> str:
        """The first part of the id."""
        return self.id.partition("-")[0]


class Judgement(NamedTuple):
    """A claim's verdict and the cases behind it."""

    claim: Claim
    verdict: str
    cases: tuple[Case, ...]
    missing: str = ""  # the experiment that has not been run

    @property
    def telling(self) -> Case | None:
        """The case that decides: the first against the claim, else the one that came nearest to failing."""
        against = next((case for case in self.cases if not case.holds), None)
        return against or max(self.cases, key=_nearness, default=None)

    def where(self, holds: bool) -> list[str]:
        """The cases for the claim, or those against it."""
        return [case.where for case in self.cases if case.holds is holds]

    @property
    def for_other_rows(self) -> str:
        """The verdict by the errors that are corrected for overlap; empty where no splits overlap."""
        overlap = any(case.difference is not None and case.difference.corrected for case in self.cases)
        return decide(tested(self.cases, [_p(case, corrected=True) for case in self.cases])) if overlap else ""


def _p(case: Case, *, corrected: bool = False) -> float | None:
    found = case.difference
    return None if found is None else found.corrected_p if corrected else found.p


def _nearness(case: Case) -> float:
    return case.near if case.difference is None else case.difference.p


def tested(cases: Sequence[Case], p_values: Sequence[float | None]) -> tuple[Case, ...]:
    """Whether each case holds: those with a p-value by Holm's correction over all of them, the others as they are."""
    known = iter(holm([p for p in p_values if p is not None]))
    return tuple(
        case if p is None else case._replace(holds=next(known) <= LEVEL)
        for case, p in zip(cases, p_values, strict=True)
    )


def decide(cases: Sequence[Case]) -> str:
    """All cases for it: holds. Half of them or more: under conditions, which are those cases. Fewer: it does not."""
    if not cases:
        return UNTESTABLE
    good = sum(case.holds for case in cases)
    return HOLDS if good == len(cases) else CONDITIONS if 2 * good >= len(cases) else FAILS


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """The verdict that the rule computes."""
    if claim.untestable:
        return Judgement(claim, UNTESTABLE, ())
    try:
        cases = list(claim.rule(evidence))
    except NotRunError as missing:
        return Judgement(claim, NOT_RUN, (), missing.experiment)
    found = tested(cases, [_p(case) for case in cases])
    return Judgement(claim, decide(found), found)
