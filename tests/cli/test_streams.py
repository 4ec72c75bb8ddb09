"""Chunks and what is known of them, a question at a terminal about many numbers, and the warm-up before all that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from tests.cli.conftest import Program

from shoal import HedgedSharing, HedgedSharingRegressor, MultitaskPerceptron
from shoal.cli.options import RowOptions
from shoal.cli.streams import FEW_ROWS, Stream, open_data, read_options, remember, title, warmed_up
from shoal.engine.rounds import Chunk
from shoal.model_file import Reading


@pytest.mark.parametrize(
    ("answer", "learner"), [("n", "MultiClass(estimator=HedgedSharing())"), ("", "HedgedSharingRegressor()")]
)
def test_who_sits_at_a_terminal_is_asked_once(
    answer: str, learner: str, shoal: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.csv"
    path.write_text("x,shop,label\n" + "".join(f"{i % 7},s{i % 2},{i % 25}\n" for i in range(100)))
    arguments = ("run", path, "--task", "shop", "--label", "label", "--no-baselines")
    answers = iter([answer])  # a second question has no answer
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    code, out, err = shoal(*arguments)
    assert code == 0
    assert "label has many values: is it a number to predict (--regression)?" in " ".join(err.split())
    assert out.startswith(learner)
    assert "label has" not in out  # what was asked is not said again
    for said in (("--regression",), ("--learner", "PassiveAggressiveRegressor"), ("--json", "-")):
        assert "[y/n]" not in shoal(*arguments, *said)[2]


@pytest.mark.parametrize("labels", [[-1.0, 1.0], [3.0, 5.0], [5.0]])
def test_warming_up_teaches_nothing_and_loses_no_row(labels: list[float]) -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.normal(size=(200, 5)))
    chunks = [Chunk(X[i : i + 100], rng.choice(labels, 100), rng.integers(0, 3, 100)) for i in (0, 100)]
    assert len(chunks[0].y) > FEW_ROWS
    learners = {"a": MultitaskPerceptron(), "b": HedgedSharing()}
    options = {"window": 10, "delay": 0, "classes": None}
    seen = list(warmed_up(iter(chunks), learners, **options))
    assert all(one is other for one, other in zip(seen, chunks, strict=True))
    assert not any(hasattr(learner, "n_features_in_") for learner in learners.values())
    assert list(warmed_up(iter([]), learners, **options)) == []


def of_file(chunks: Iterator[Any], file: Any, kind: str = "binary", rows: int | None = None) -> Stream:
    return Stream(chunks, kind, None, "a.csv", rows, file)


def test_a_stream_is_read_up_to_the_second_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no further; not at all where the learners know the order of the labels, and not for ever."""
    monkeypatch.setattr("shoal.cli.streams.MOST_HELD", 20)
    read: list[int] = []

    def chunks(second: int) -> Iterator[Any]:
        for k in range(8):
            read.append(k)
            file.n_rows = 10 * (k + 1)
            file.classes = ["a", "b"] if k >= second else ["a"]
            yield k

    for second, held, labels in ((0, [0], ["a", "b"]), (1, [0, 1], ["a", "b"]), (5, [0, 1, 2], None)):
        file = SimpleNamespace(classes=["a"], n_rows=0, labels_are_numbers=False)
        begun = of_file(chunks(second), file).begun()
        assert read == held
        assert (None if begun.classes is None else [*begun.classes]) == labels
        assert [*begun.chunks] == [*range(8)]
        read.clear()
    for kind, numbers in (("multiclass", False), ("regression", False), ("binary", True)):
        file = SimpleNamespace(classes=["a"], n_rows=0, labels_are_numbers=numbers)
        assert of_file(chunks(0), file, kind).begun().classes is None
        assert read == []
    of_file(chunks(0), file).judged()
    assert read == [0]
    Stream(chunks(0), "binary", None, "standard input", None, None).judged()
    assert read == [0]


def test_how_far_a_stream_is_and_what_it_says_of_labels() -> None:
    def file(**known: Any) -> Any:
        return SimpleNamespace(**{"notes": [], "bad_rows": [], "labels_are_numbers": False, **known})

    assert of_file(iter([]), None, rows=50).fraction(20) == 0.4
    assert of_file(iter([]), file(total_bytes=200, bytes_read=50), rows=0).fraction(20) == 0.25
    assert of_file(iter([]), file(total_bytes=200, bytes_read=None)).fraction(20) == 0.0
    assert of_file(iter([]), file(total_bytes=0, bytes_read=0)).fraction(20) is None
    assert of_file(iter([]), None).fraction(20) is None
    assert of_file(iter([]), None).notes() == []
    said = "of the labels 'no' is positive, 'yes' negative"
    turned = of_file(iter([]), file(classes=["yes", "no"], notes=["sort= needs time="], bad_rows=["row 3 is bad"]))
    assert turned.notes() == [said, "--sort needs --time", "row 3 is bad"]
    for kind, labels, numbers in (
        ("binary", [0, 1], True),
        ("binary", ["a"], False),
        ("multiclass", ["b", "a"], False),
    ):
        assert of_file(iter([]), file(classes=labels, labels_are_numbers=numbers), kind).notes() == []
    assert of_file(iter([]), file(classes=[1, 0], labels_are_numbers=True)).notes() == [
        "of the labels 0 is positive, 1 negative"
    ]
    assert [title(names) for names in (["-"], ["x/a.csv"], ["x/a.csv", "b"], ["/"])] == [
        "standard input", "a.csv", "a.csv and 1 more", "/"
    ]  # fmt: skip


def test_typed_options_go_before_those_of_the_model() -> None:
    rows = RowOptions(task=("shop",), label="sold", regression=True, skip_bad=True)
    reading = Reading({"label": "old", "weight": "w"}, {})
    options = read_options(rows, reading, kind="auto")
    assert (options.task, options.label, options.weight, options.skip_bad) == ("shop", "sold", "w", True)
    assert tuple(read_options(RowOptions(task=("a", "b")), None).tasks) == ("a", "b")
    assert remember(rows, reading) == {"label": "sold", "weight": "w", "task": ("shop",)}
    with pytest.raises(ValueError, match="unknown options of reading"):
        read_options(rows, Reading({"colour": "red"}, {}))
    with pytest.raises(TypeError):
        read_options(rows, None, colour="red")


@pytest.mark.parametrize(
    ("data", "rows", "learner", "message"),
    [
        (["a"], RowOptions(regression=True, classify=True), None, "--regression and --classify contradict each other"),
        (["a"], RowOptions(regression=True), HedgedSharing(), "HedgedSharing is for labels: leave out --regression or"),
        (
            ["a"],
            RowOptions(classify=True),
            HedgedSharingRegressor(),
            "Regressor is for numbers: leave out --classify or",
        ),
        (["dataset:school", "b"], RowOptions(), None, "a built-in data set cannot be one of several files"),
        (["dataset:school"], RowOptions(skip_bad=True), None, "has its task and label: leave out --skip-bad"),
    ],
)
def test_what_contradicts_is_refused(data: list[str], rows: RowOptions, learner: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_data(data, rows, learner, None)
