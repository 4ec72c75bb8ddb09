"""The library's default and its two forms without sharing: they have nothing to tune, and stand beside what has."""

from __future__ import annotations

from shoal.papers.experiment import Entrant

_FORMS = {"HedgedSharing": "learned", "HedgedSharing, independent": "independent", "HedgedSharing, pooled": "pooled"}
NOTHING = "it has nothing to tune"
OF_LABELS, OF_NUMBERS = (
    tuple(Entrant(name, learner, {"relation": relation}, untuned=NOTHING) for name, relation in _FORMS.items())
    for learner in ("HedgedSharing", "HedgedSharingRegressor")
)
