"""The tables of peers: a tiny stream from end to end, what a stored forecast saves, and scores by hand."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.peers import by_row
from benchmarks.peers.__main__ import main
from benchmarks.peers.columns import ahead, score
from benchmarks.peers.panels import read
from benchmarks.scores import Stream
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

N_ROWS = 200


def _write(folder: Path, name: str, *, classification: bool) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(N_ROWS, 2)), np.ones(N_ROWS)])
    task = rng.integers(3, size=N_ROWS)
    f = X @ [1.0, -1.0, 0.0] + task
    rows = csr_matrix(X)
    folder.mkdir(exist_ok=True)
    np.savez(
        folder / f"{name}.npz",
        kind="classification" if classification else "regression",
        data=rows.data,
        indices=rows.indices,
        indptr=rows.indptr,
        shape=rows.shape,
        task=task,
        y=np.where(f > 1, 1.0, -1.0) if classification else f + 0.1 * rng.normal(size=N_ROWS),
        table=np.column_stack([X[:, :2], task]),
        categories=np.array([2]),
    )


def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    monkeypatch.setattr(sys, "argv", ["benchmarks.peers", *map(str, arguments)])
    main()
    return capsys.readouterr().out


def test_from_streams_to_tables_and_peers_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, cache, kept = tmp_path / "panels", tmp_path / "cache", tmp_path / "before.npz"
    _write(data, "labels", classification=True)
    _write(data, "targets", classification=False)
    options = ("--panels", data, "--cache", cache, "--peers", "naive,EasyAdapt", "--markdown")
    first = _run(monkeypatch, capsys, *options, "--keep", kept)
    assert "| labels | AUC | EasyAdapt C" in first
    assert "| targets | macro-RMSE | EasyAdapt C" in first
    assert "of 6 columns, each against its strongest peer." in first
    assert len(list(cache.rglob("*.npy"))) == 4 + 4 + 5 + 4

    with monkeypatch.context() as broken:
        broken.setattr(by_row, "naive", None)  # whoever runs a peer again fails
        broken.setattr("benchmarks.peers.retrained._easy_adapt", None)
        second = _run(broken, capsys, *options, "--replay", kept, "--against", kept)
    assert "shoal less before: better by more than one standard error in 0 columns, worse in 0." in second
    assert next(line for line in first.splitlines() if line.startswith("| targets |")).split(" | ")[1] in second

    for path in cache.glob("labels-*/EasyAdapt*/*"):
        path.unlink()
    third = _run(monkeypatch, capsys, *options, "labels", "--replay", kept, "--stored")
    assert "EasyAdapt: not every setting is stored yet; left out." in third
    assert "| labels | AUC | naive" in third


def test_a_peer_that_is_not_installed_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, "targets", classification=False)
    monkeypatch.setattr("benchmarks.peers.stored.Peer.installed", lambda peer: "-" if peer.package == "" else None)
    shown = _run(monkeypatch, capsys, "--panels", tmp_path, "--peers", "naive,GPBoost")
    assert "GPBoost: gpboost is not installed; left out." in shown
    assert "| naive" not in shown
    assert "naive" in shown


def test_naive_means_forget_and_the_last_value_is_the_tasks(tmp_path: Path) -> None:
    _write(tmp_path, "targets", classification=False)
    panel = read(tmp_path, "targets")
    y, task = np.array([4.0, 1.0, 6.0, 8.0]), np.array([0, 1, 0, 0])
    panel = panel._replace(y=y, task=task)
    np.testing.assert_allclose(by_row.naive(panel, 0.0), [0.0, 4.0, 4.0, 6.0])
    np.testing.assert_allclose(by_row.naive(panel, 1.0), [0.0, 4.0, (4 + 2 * 2.5) / 3, (4 + 6 + 2 * 11 / 3) / 4])
    half = by_row.naive(panel, 0.5)  # of the second row of task 0: the prior's two rows count as one
    np.testing.assert_allclose(half[2], (4 + 1 * 2.5) / 2)


def test_scores_and_their_differences() -> None:
    rng = np.random.default_rng(1)
    n = 400
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    labels = Stream("labels", None, y, np.arange(n) % 7)
    one, other = (np.round(y * strength + rng.normal(size=n), 1) for strength in (1.0, 0.5))
    found = [score(labels, "AUC", logits) for logits in (one, other)]
    assert [auc.value for auc in found] == pytest.approx([roc_auc_score(y, logits) for logits in (one, other)])
    assert found[0].contributions.mean() == pytest.approx(0.0, abs=1e-12)
    gap = ahead("AUC", *found)
    assert gap.mean == pytest.approx(found[0].value - found[1].value)
    assert 0.5 < gap.standard_error / _spread(labels, one, other) < 2.0

    errors = [score(labels, "error", logits) for logits in (one, other)]
    assert ahead("error", *errors).mean == pytest.approx(np.mean((other >= 0) != (y > 0)) - errors[0].value)

    targets = Stream("targets", None, np.array([0.0, 0.0, 0.0, 2.0]), np.array([0, 0, 1, 3]))
    f = np.array([3.0, 4.0, 1.0, 2.0])
    assert score(targets, "RMSE", f).value == pytest.approx(np.sqrt(26 / 4))
    assert score(targets, "macro-RMSE", f).value == pytest.approx((np.sqrt(12.5) + 1 + 0) / 3)
    assert score(targets, "MAE", f).value == 2.0
    by_task = ahead("macro-RMSE", score(targets, "macro-RMSE", targets.y), score(targets, "macro-RMSE", f))
    assert by_task.standard_error == pytest.approx(np.std([np.sqrt(12.5), 1, 0], ddof=1) / np.sqrt(3))


def _spread(stream: Stream, one: Any, other: Any) -> float:
    """The standard error of the AUCs' difference, by drawing rows again."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        rows = rng.integers(len(stream.y), size=len(stream.y))
        drawn = stream._replace(y=stream.y[rows], task=stream.task[rows])
        found.append(score(drawn, "AUC", one[rows]).value - score(drawn, "AUC", other[rows]).value)
    return float(np.std(found))
