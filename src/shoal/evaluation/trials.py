"""What a search for hyper-parameters tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.evaluation.result import label

if TYPE_CHECKING:
    import polars as pl


class Trial(NamedTuple):
    """One combination of hyper-parameters and how it did."""

    parameters: dict[str, Any]
    scores: tuple[float, ...]  # one a fold
    seconds: float
    error: str = ""  # why it could not be tried

    @property
    def score(self) -> float:
        """Mean over the folds; NaN if it could not be tried."""
        return float(np.mean(self.scores)) if self.scores else float("nan")


@dataclass(frozen=True)
class SearchResult:
    """What was tried, best first; `str()` gives the table, `table` a polars data frame."""

    metric: str
    validation: str
    trials: list[Trial]
    best_learner: Any  # trained on all rows, in their order

    @property
    def best_params(self) -> dict[str, Any]:
        """Hyper-parameters of the best trial."""
        return self.trials[0].parameters

    @property
    def best_score(self) -> float:
        """Its score."""
        return self.trials[0].score

    @property
    def table(self) -> pl.DataFrame:
        """A row per trial, best first: hyper-parameters, mean score, its deviation over folds, seconds, failure."""
        import polars as pl

        names = list(self.trials[0].parameters)
        return pl.DataFrame(
            {name: _column([trial.parameters[name] for trial in self.trials]) for name in names}
            | {
                self.metric: [trial.score for trial in self.trials],
                "deviation": [_deviation(trial.scores) for trial in self.trials],
                "seconds": [trial.seconds for trial in self.trials],
                "failure": [trial.error for trial in self.trials],
            },
            strict=False,
        )

    def __str__(self) -> str:
        titles = [*self.trials[0].parameters, label(self.metric), "deviation", "seconds"]
        rows = [
            [*map(_shown, t.parameters.values()), f"{t.score:.4f}", f"{_deviation(t.scores):.4f}", f"{t.seconds:.2f}"]
            for t in self.trials
        ]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        failures = [t.error for t in self.trials if t.error]
        lines = ["  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in (titles, *rows)]
        return "\n".join([*lines, *(f"{len(failures)} not tried: {text}" for text in failures[:1])])


def _deviation(scores: tuple[float, ...]) -> float:
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan")


def _column(values: list[Any]) -> list[Any]:
    """The values as they are if they are of one kind, else as text."""
    kinds = {type(value) for value in values if value is not None}
    return values if kinds <= {int, float} or kinds in ({str}, {bool}) else list(map(str, values))


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
