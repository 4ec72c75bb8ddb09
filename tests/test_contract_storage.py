"""Save and load of every learner: continuing a loaded model is continuing, and damaged files are clear errors."""

from __future__ import annotations

import datetime
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file
from tests.cases import EDGES, LEARNERS, MATRIX, OPEN, K, saved, stream_for, taught, values
from tests.exclusions import each_of

import shoal
from shoal import HedgedSharing, MultitaskPerceptron, PassiveAggressive, relations
from shoal.model import persistence

each_learner = each_of(LEARNERS)


def reloaded(learner: Any, folder: Path) -> Any:
    learner.save(folder / "model.shoal")
    return shoal.load(folder / "model.shoal")


def memory(learner: Any) -> int:
    """Bytes of all that it holds: arrays with their spare capacity, ids, labels and counts."""
    return len(pickle.dumps(learner))


def assert_continues(learner: Any, other: Any, name: str, ids: Any = None, **options: Any) -> None:
    stream = stream_for(name, seed=5, **options)
    task = stream.task if ids is None else ids[stream.task]
    for model in (learner, other):
        model.partial_fit(stream.X, stream.y, task, rounds=stream.rounds)
        model.learn_one(stream.X[0], stream.y[0].item(), task[0])
    assert saved(other) == saved(learner)


@each_learner
def test_continuing_a_loaded_model_is_continuing(name: str, tmp_path: Path) -> None:
    learner = taught(name)
    other = reloaded(learner, tmp_path)
    assert type(other) is type(learner)
    assert str(other.get_params()) == str(learner.get_params())
    assert (other.tasks_, other.n_updates_) == (learner.tasks_, learner.n_updates_)
    stream = stream_for(name, seed=4)
    np.testing.assert_array_equal(values(other, stream.X, stream.task), values(learner, stream.X, stream.task))
    assert_continues(learner, other, name)


@each_learner
def test_memory_does_not_grow_with_rows(name: str) -> None:
    learner, stream = taught(name), stream_for(name)
    before = memory(learner)
    for _ in range(4):
        learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert memory(learner) == before


def test_the_default_keeps_a_bounded_number_of_rows() -> None:
    learner, sizes = HedgedSharing(classes=[0, 1]).add_tasks(range(4)), []
    for n in (18_000, 2_000):  # labels are alike, so that its trees are small
        learner.partial_fit(np.ones((n, 1)), np.ones(n), np.resize(np.arange(4), n))
        sizes.append(memory(learner))
    assert sizes[0] == sizes[1]


@each_of(OPEN)
def test_after_growth_and_forgetting(name: str, tmp_path: Path) -> None:
    """Room beyond what is used is not saved, and its absence changes nothing."""
    learner = taught(name, K=11, protocol="growing")
    learner.forget_task(3).forget_task(0).add_tasks(["late", 77])
    other = reloaded(learner, tmp_path)
    assert other.tasks_ == learner.tasks_
    learner.add_features(0)
    assert_continues(learner, other, name, K=14, protocol="growing")


IDS: dict[str, list[Any]] = {
    "int": [5, -3, 10**20, 0, 1],
    "str": ["a", "Ünïcode", "", "b c", "d"],
    "tuple": [("a", 1), ("a", 2), ("b", (1, 2.5)), (), ("c", None)],
    "date": [datetime.date(2026, 1, day) for day in range(1, 5)] + [datetime.datetime(2026, 1, 1, 12)],
    "mixed": [1.5, "1.5", b"bytes", True, frozenset([1])],
}


@pytest.mark.parametrize("kind", IDS)
@each_of(OPEN)
def test_every_kind_of_task_id(name: str, kind: str, tmp_path: Path) -> None:
    ids = np.empty(K, object)
    ids[:] = IDS[kind]
    stream = stream_for(name)
    learner = LEARNERS[name]().partial_fit(stream.X, stream.y, ids[stream.task], rounds=stream.rounds)
    other = reloaded(learner, tmp_path)
    assert other.tasks_ == learner.tasks_
    assert list(map(type, other.tasks_)) == list(map(type, learner.tasks_))
    assert_continues(learner, other, name, ids)


@each_of(OPEN)
def test_without_tasks(name: str, tmp_path: Path) -> None:
    stream = stream_for(name, K=1)
    learner = LEARNERS[name]().partial_fit(stream.X, stream.y)
    other = reloaded(learner, tmp_path)
    assert other.tasks_ == [None]
    for model in (learner, other):
        model.partial_fit(stream.X, stream.y)
        model.learn_one(stream.X[0], stream.y[0].item())
    assert saved(learner) == saved(other)


@pytest.mark.parametrize(
    "y", [["no", "yes"], [False, True], [0, 1], [-1.0, 1.0], [1], [0.0], [True], np.array(["x", "y"], object)], ids=str
)
def test_every_kind_of_label(y: Any, tmp_path: Path) -> None:
    learner = PassiveAggressive().partial_fit(np.eye(2)[: len(y)], y)
    other = reloaded(learner, tmp_path)
    assert other.classes_.tolist() == learner.classes_.tolist()
    assert type(other.predict_one([1.0, 0.0])) is type(learner.predict_one([1.0, 0.0]))
    for model in (learner, other):
        model.partial_fit(np.ones((1, 2)), learner.classes_[:1])
    assert saved(learner) == saved(other)


@pytest.mark.parametrize("names", [["a", "b"], ["", "ü"], [1, 2], [("word", 1), ("word", 2)]], ids=str)
def test_names_of_features(names: list[Any], tmp_path: Path) -> None:
    learner = PassiveAggressive()
    learner.learn_one({names[0]: 1.0}, 1, "t")
    other = reloaded(learner, tmp_path)
    for model in (learner, other):
        model.learn_one({names[1]: 2.0, names[0]: 1.0}, -1, "t")
    assert list(other.feature_names_in_) == list(learner.feature_names_in_) == names
    assert saved(learner) == saved(other)


def graph() -> nx.Graph:
    return nx.Graph(EDGES)


RELATIONS: dict[str, Any] = {
    "edges": EDGES,
    "weighted edges of names": [("a", "b", 0.5), ("b", ("c", 1), 2.0)],
    "networkx": graph(),
    "adjacency": nx.to_numpy_array(graph()),
    "sparse adjacency": sp.csr_matrix(nx.to_numpy_array(graph())),
    "matrix": relations.matrix(MATRIX),
    "rates": relations.rates(np.linalg.inv(MATRIX)),
    "graph": relations.graph([("a", "b"), ("b", "c")], tasks=["z"]),
    "constant": relations.constant(2),
    "b": 3,
    "inf": float("inf"),
}


@pytest.mark.parametrize("kind", RELATIONS)
def test_every_kind_of_relation(kind: str, tmp_path: Path) -> None:
    learner = MultitaskPerceptron(relation=RELATIONS[kind])
    tasks = learner.new_core().named_tasks or list(range(K))
    stream = stream_for("MultitaskPerceptron", K=len(tasks))
    ids = np.empty(len(tasks), object)
    ids[:] = tasks
    learner.partial_fit(stream.X, stream.y, ids[stream.task], rounds=stream.rounds)
    other = reloaded(learner, tmp_path)
    assert other.tasks_ == learner.tasks_
    np.testing.assert_allclose(other.relation_, learner.relation_, rtol=1e-15)
    assert_continues(learner, other, "MultitaskPerceptron", ids, K=len(tasks))


def test_what_cannot_be_saved_says_so(tmp_path: Path) -> None:
    class Custom:
        pass

    learner = PassiveAggressive().partial_fit(np.eye(2), [0, 1], [Custom(), Custom()])
    with pytest.raises(ValueError, match=r"cannot save task id.*: a Custom has no plain form"):
        learner.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="not fitted"):
        PassiveAggressive().save(tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="no model at"):
        shoal.load(tmp_path / "model")


OWN = """import shoal

class MyLearner(shoal.PassiveAggressive):
    pass

class OSMTL(shoal.PassiveAggressive):
    pass

not_a_class = print
"""


def test_own_learners_are_built_if_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 32: a file that holds one is whole; nothing is imported because a file names it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_learners.py").write_text(OWN)
    import own_learners  # type: ignore[import-not-found]

    path, stream = tmp_path / "model.shoal", stream_for("PassiveAggressive")
    for learner, name in (
        (own_learners.MyLearner(C=0.5), "MyLearner"),
        (own_learners.OSMTL(), "OSMTL"),  # not shoal's
        (shoal.MultiClass(own_learners.MyLearner(C=0.5)), "MyLearner"),
    ):
        learner.partial_fit(stream.X, stream.y, stream.task)
        learner.save(path)
        monkeypatch.delitem(sys.modules, "own_learners", raising=False)
        for trusted in ((), ["own_learners.Other", "other.MyLearner"]):
            with pytest.raises(ValueError, match=rf"model\.shoal holds a own_learners\.{name}, which is no learner"):
                shoal.load(path, trusted=trusted)
        assert "own_learners" not in sys.modules
        for name_of_class in (f"own_learners.{name}", f"own_learners:{name}"):
            assert saved(shoal.load(path, trusted=["other.Learner", name_of_class])) == saved(learner)
    monkeypatch.delitem(sys.modules, "own_learners")
    (tmp_path / "own_learners.py").write_text("class MyLearner:\n    pass\n")
    with pytest.raises(ValueError, match=r"holds a own_learners\.MyLearner, which is no shoal\.Learner"):
        shoal.load(path, trusted=["own_learners.MyLearner"])
    monkeypatch.delitem(sys.modules, "own_learners")
    (tmp_path / "own_learners.py").write_text("1 / 0")
    with pytest.raises(ValueError, match=r"own_learners\.MyLearner, which cannot be imported: division by zero"):
        shoal.load(path, trusted=["own_learners.MyLearner"])

    class Local(PassiveAggressive):
        pass

    with pytest.raises(ValueError, match="cannot save a Local: its class stands in a function"):
        Local().partial_fit(stream.X, stream.y, stream.task).save(path)
    newer = PassiveAggressive().partial_fit(stream.X, stream.y, stream.task)
    header, arrays = newer._content()
    persistence.write(path, header | {"class": "OfTomorrow"}, arrays)
    with pytest.raises(ValueError, match="holds a OfTomorrow, which this shoal does not have: a newer one"):
        shoal.load(path)


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    learner = taught("OSMTL")
    assert len({saved(learner) for _ in range(10)}) == 1


def test_damage_anywhere_is_noticed(tmp_path: Path) -> None:
    learner = PassiveAggressive().partial_fit(np.eye(2), ["no", "yes"], ["a", "b"])
    content = saved(learner)
    path = tmp_path / "model"
    for position in range(len(content)):
        for flip in (0x01, 0xFF) if position % 5 == 0 else (0x04,):
            damaged = bytearray(content)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=r"model (is damaged|is not a shoal model|has format)"):
                shoal.load(path)
    path.write_bytes(content)
    assert saved(shoal.load(path)) == content


def test_truncated_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "model"
    content = saved(taught("OSMTL"))
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="is not a shoal model, or is truncated or damaged"):
            shoal.load(path)
    path.write_bytes(content + b"more")
    with pytest.raises(ValueError, match="is not a shoal model, or is truncated or damaged"):
        shoal.load(path)
    path.write_text("weights: none\n" * 20)
    with pytest.raises(ValueError, match="is not a shoal model"):
        shoal.load(path)
    save_file({"weights": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="its header does not name shoal"):
        shoal.load(path)
    save_file({"weights": np.zeros(3)}, path, {"shoal": "1"})
    with pytest.raises(ValueError, match="damaged"):
        shoal.load(path)
    with pytest.raises(FileNotFoundError, match="no model at"):
        shoal.load(tmp_path)


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_crash_while_writing_leaves_the_old_model(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    taught("PassiveAggressive").save(path)
    before = path.read_bytes()

    def crash(*_: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, crash)
        with pytest.raises(OSError, match="no space left"):
            taught("PassiveAggressive", seed=1).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    taught("PassiveAggressive", seed=1).save(path)
    assert path.read_bytes() != before
