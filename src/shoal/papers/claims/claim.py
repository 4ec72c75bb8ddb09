"""A claim of a paper: where it stands, how we read it, and the rule that decides it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoal.papers.claims.evidence import Evidence, NotRunError

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
    """One place where a claim can be looked at: a data set, a pair of learners, a setting."""

    where: str
    holds: bool
    first: Number
    second: Number


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
        """The case that decides: one against the claim if there is one."""
        against = [case for case in self.cases if not case.holds]
        return next(iter(against or self.cases), None)

    def where(self, holds: bool) -> list[str]:
        """The cases for the claim, or those against it."""
        return [case.where for case in self.cases if case.holds is holds]


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
        cases = tuple(claim.rule(evidence))
    except NotRunError as missing:
        return Judgement(claim, NOT_RUN, (), missing.experiment)
    return Judgement(claim, decide(cases), cases)
