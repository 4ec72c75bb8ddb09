"""Sentiment of reviews in 16 domains, 14 of them Amazon's products (FDU-MTL: Liu, Qiu, Huang, ACL 2017)."""

import gzip
from pathlib import Path
from typing import Literal

import numpy as np

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import find
from shoal.datasets.word_counts import check_transform, transformed

_DOMAINS = (
    "apparel",
    "baby",
    "books",
    "camera_photo",
    "dvd",
    "electronics",
    "health_personal_care",
    "imdb",
    "kitchen_housewares",
    "magazines",
    "MR",
    "music",
    "software",
    "sports_outdoors",
    "toys_games",
    "video",
)
_DESCRIPTION = (
    "Words and pairs of words of reviews ({transform}); task = kind of product, or of film review, label = +1 for a "
    "good review (about half). The reviews have no dates: shuffle or interleave them."
)


def load_sentiment(
    transform: Literal["counts", "log-norm"] = "counts", min_reviews: int = 2, pairs: bool = True
) -> Dataset:
    """31,780 reviews of 16 domains, good or bad.

    It stands in for the 24 domains of Blitzer, Dredze and Pereira (ACL 2007) that the online multi-task papers use: 14
    are among those, two (imdb, MR) are film reviews from elsewhere.

    Parameters
    ----------
    transform : "counts" or "log-norm"
        Counts as they are, or log(1 + count) scaled to unit norm per review.
    min_reviews : int >= 1
        Leave out words and pairs that occur in fewer reviews; 2 leaves 326,798, the papers have 350,000.
    pairs : bool
        Count pairs of neighbouring words too.

    Returns
    -------
    Dataset
        Binary; X is sparse; tasks are the domains' names, such as "books". The authors' training and test reviews of
        a domain follow each other.

    Raises
    ------
    ValueError
        If `transform` is unknown or `min_reviews` is below 1.
    FileNotFoundError
        If a file, `sentiment16_fdu_mtl/books.task.train.gz` and so on, is nowhere; see `SHOAL_DATA`.
    """
    check_transform(transform)
    if min_reviews < 1:
        raise ValueError(f"min_reviews must be at least 1, got {min_reviews}")
    from sklearn.feature_extraction.text import CountVectorizer

    texts: list[str] = []
    labels: list[float] = []
    sizes = []
    for domain in _DOMAINS:
        before = len(texts)
        for part in ("train", "test"):
            found = _read(find("sentiment16_fdu_mtl", f"{domain}.task.{part}.gz"))
            texts.extend(text for _, text in found)
            labels.extend(label for label, _ in found)
        sizes.append(len(texts) - before)
    # The texts are tokenised: words stand between spaces.
    words = CountVectorizer(
        token_pattern=r"\S+", ngram_range=(1, 2 if pairs else 1), min_df=min_reviews, dtype=np.float64
    )
    counts = words.fit_transform(texts)
    return Dataset(
        name="sentiment",
        X=transformed(counts, transform),
        y=np.array(labels),
        task=np.repeat(_DOMAINS, sizes),
        feature_names=tuple(words.get_feature_names_out().tolist()),
        description=_DESCRIPTION.format(transform=transform),
        kind="binary",
    )


def _read(path: Path) -> list[tuple[float, str]]:
    """Label and text of each line."""
    lines = gzip.decompress(path.read_bytes()).decode("latin-1").split("\n")  # not valid UTF-8 throughout
    rows = [line.partition("\t") for line in lines if line]
    return [(1.0 if label == "1" else -1.0, text) for label, _, text in rows]
