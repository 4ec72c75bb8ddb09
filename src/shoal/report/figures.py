"""All pictures of a run."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from shoal.evaluation import Evaluation
from shoal.report.calibration import calibration_figure
from shoal.report.confusion import confusion_figure
from shoal.report.coverage import coverage_figure
from shoal.report.figure import Figure
from shoal.report.forecasts import forecasts_figure
from shoal.report.gain import gain_figure
from shoal.report.importance import importance_figure
from shoal.report.progress import progress_figure
from shoal.report.relation import relation_figure
from shoal.report.sharing import sharing_figure
from shoal.report.updates import updates_figure

FORMATS = ("png", "svg")


def figures(evaluations: Mapping[str, Evaluation]) -> list[Figure]:
    """The pictures that the evaluations allow.

    Parameters
    ----------
    evaluations : dict of name -> Evaluation
        Of one stream; the learner first, then what it is compared with. The gain from sharing is shown
        against those named "independent" and "pooled".

    Returns
    -------
    list of Figure
        progress (scores over time), gain (per task, from sharing), importance (of columns), calibration (of
        probabilities), coverage (of intervals and sets), forecasts (of numbers, against the truth), confusion (of
        several labels), sharing (which way won per task), relation (heat map), updates (per task). Pictures without
        data are left out.
    """
    if not evaluations:
        raise ValueError("evaluations is empty; expected at least one, the learner's first")
    makers = (
        progress_figure,
        gain_figure,
        importance_figure,
        calibration_figure,
        coverage_figure,
        forecasts_figure,
        confusion_figure,
        sharing_figure,
        relation_figure,
        updates_figure,
    )
    return [figure for figure in (maker(evaluations) for maker in makers) if figure is not None]


def save_figures(
    folder: str | os.PathLike[str], evaluations: Mapping[str, Evaluation], formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write each picture as PNG (twice the screen's resolution) and SVG.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    evaluations : dict of name -> Evaluation
        As for `figures`.
    formats : sequence of "png" and "svg"

    Returns
    -------
    list of Path
        The files written.
    """
    wrong = [name for name in formats if name not in FORMATS]
    if wrong:
        raise ValueError(f"format {wrong[0]!r} is not known; expected any of {FORMATS}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures(evaluations):
        for name in formats:
            path = folder / f"{figure.name}.{name}"
            figure.save(path)
            written.append(path)
    return written
