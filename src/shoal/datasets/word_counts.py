"""Word counts of mails, as they are or scaled as text learners like them."""

from typing import Any

TRANSFORMS = ("counts", "log-norm")


def check_transform(transform: str) -> None:
    """Raise unless it is one of `TRANSFORMS`: called before anything is read."""
    if transform not in TRANSFORMS:
        raise ValueError(f"transform must be 'counts' or 'log-norm', got {transform!r}")


def transformed(counts: Any, transform: str) -> Any:
    """Sparse counts as they are, or log(1 + count) scaled to unit norm per mail."""
    if transform == "counts":
        return counts
    from sklearn.preprocessing import normalize

    return normalize(counts.log1p(), copy=False)
