"""RCV1: newswire stories as four tasks that overlap more and more (Cavallanti et al., JMLR 11, 2010, section 7)."""

import io
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from shoal.datasets.dataset import Dataset
from shoal.datasets.files import find

_WIDTH = 47_236
# Each task's own topics: second and third level of one main branch, related, about 15 % of the stories or more. The
# paper does not list its own. The first task's topics come to the others in the order written here, three steps;
# theirs go in the order written, four steps.
_OWN = {
    "corporate": "C151 C1511 C171  C152 C172 C173  C15 C17 C174",
    "economics": "E11 E12 E121 E13 E131 E132 E14 E141  E142 E143 E211 E212 E31 E311 E312  "
    "E313 E41 E411 E51 E511 E512 E513  E61 E71 E21",
    "government": "GCRIM GDIS  GVIO GDEF  GDIP  GPOL",
    "markets": "M131 M132  M13  M141 M142  M14",
}
_STEPS_IN, _STEPS_OUT = 3, 4
_DESCRIPTION = (
    "Newswire stories of 1996-97 as TF-IDF vectors of unit norm, every fourth for each of four tasks; label = +1 if "
    "the story has one of the task's topics. Level {level} of 8: {how}. The order by date is lost."
)


def load_rcv1(level: int = 1) -> Dataset:
    """27,612 stories in four tasks, from unrelated (level 1) to the same (level 8): D1 to D8 of the paper.

    At level 1 each task is a set of topics of one main branch (companies, economics, government, markets). At levels
    2 to 4 the topics of the first task are added to the others in three steps, at levels 5 to 8 their own are dropped
    in four.

    Parameters
    ----------
    level : int, 1 to 8

    Returns
    -------
    Dataset
        Binary; X is sparse, 47,236 wide; rows four by four: row 4 n + j is the story of task j in the n-th round.

    Raises
    ------
    ValueError
        If there is no such level.
    FileNotFoundError
        If a file, `rcv1_subsets/rcv1subset1.svm.gz` to `5` or `topics.txt`, is nowhere; see `SHOAL_DATA`.
    """
    if level not in range(1, 9):
        raise ValueError(f"level must be an integer from 1 (unrelated) to 8 (the same), got {level!r}")
    X, topics, names = _stories()
    n = len(topics) // 4 * 4
    sets = task_topics(level)
    columns = {name: j for j, name in enumerate(names)}
    member = np.column_stack([topics[:n, [columns[topic] for topic in wanted]].any(axis=1) for wanted in sets.values()])
    turn = np.arange(n) % 4
    how = "unrelated" if level == 1 else "the same" if level == 8 else "related"
    return Dataset(
        name=f"rcv1_d{level}",
        X=X[:n],
        y=np.where(member[np.arange(n), turn], 1.0, -1.0),
        task=np.array(list(sets))[turn],
        feature_names=tuple(f"word{j}" for j in range(1, _WIDTH + 1)),
        description=_DESCRIPTION.format(level=level, how=how),
        kind="binary",
    )


def task_topics(level: int) -> dict[str, list[str]]:
    """The topics of each task.

    Examples
    --------
    >>> from shoal.datasets.rcv1 import task_topics
    >>> task_topics(1)["markets"]
    ['M131', 'M132', 'M13', 'M141', 'M142', 'M14']
    >>> task_topics(5)["markets"]
    ['M13', 'M141', 'M142', 'M14', 'C151', 'C1511', 'C171', 'C152', 'C172', 'C173', 'C15', 'C17', 'C174']
    >>> set(task_topics(8)["markets"]) == set(task_topics(8)["corporate"])
    True
    """
    own = {task: topics.split() for task, topics in _OWN.items()}
    first = own["corporate"]
    come = sum(len(part) for part in np.array_split(first, _STEPS_IN)[: max(0, level - 1)])
    sets = {"corporate": first}
    for task in list(own)[1:]:
        gone = sum(len(part) for part in np.array_split(own[task], _STEPS_OUT)[: max(0, level - 4)])
        sets[task] = own[task][gone:] + first[:come]
    return sets


@lru_cache(maxsize=1)  # eight levels are made of the same stories
def _stories() -> tuple[Any, NDArray[np.bool_], list[str]]:
    """Distinct stories, their topics as a table, the topics' names."""
    import gzip

    from sklearn.datasets import load_svmlight_file

    lines = find("rcv1_subsets", "topics.txt").read_text(encoding="utf-8").splitlines()
    names = [line.split("\t")[1] for line in lines]
    parts, topics = [], []
    seen: set[bytes] = set()
    for k in range(1, 6):
        content = gzip.decompress(find("rcv1_subsets", f"rcv1subset{k}.svm.gz").read_bytes())
        stories = content.splitlines()
        words = [story.partition(b" ")[2] for story in stories]  # the files overlap: the same words are the same story
        fresh = []
        for i, story in enumerate(words):
            if story not in seen:
                fresh.append(i)
                seen.add(story)
        X, labels = load_svmlight_file(
            io.BytesIO(b"\n".join(stories[i] for i in fresh)), n_features=_WIDTH, multilabel=True, zero_based=False
        )
        parts.append(X)
        for story in labels:
            row = np.zeros(len(names), bool)
            row[np.array(story, int) - 1] = True
            topics.append(row)
    X = csr_matrix(vstack(parts, format="csr"))
    return X, np.array(topics), names
