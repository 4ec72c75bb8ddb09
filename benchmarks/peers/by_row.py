"""Peers that learn from the stream a row at a time, as shoal does: Vowpal Wabbit, SGD, river, means of the task."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.boosting import base_rates, means
from benchmarks.peers.panels import Panel
from benchmarks.peers.stored import Peer
from benchmarks.scores import CERTAIN

RIVER_ROWS = 3_000
_RULES = [
    *(f"-l {rate}{power}" for power in ("", " --power_t 0") for rate in (0.1, 0.5, 2, 8)),
    "--coin",
    "--ftrl",
]
_VW = [f"{crossed}{rule}" for crossed in ("", "-q tf ", "-q tf -q ff ") for rule in _RULES]
_VW += ["-q tf -l 0.5 --l2 1e-5"]
_MEDIAN = [f"{crossed}-l 0.5 --loss_function quantile" for crossed in ("", "-q tf ")]
_SGD: dict[str, dict[str, Any]] = {"default": {}} | {
    f"constant {rate}": {"learning_rate": "constant", "eta0": rate} for rate in (0.01, 0.05, 0.2)
}
_FORGETTING = {"mean": 1.0, "forgetting 0.99": 0.99, "forgetting 0.9": 0.9, "forgetting 0.7": 0.7}


def cheap(*, classification: bool) -> list[Peer]:
    """Those of seconds."""
    vw = _VW if classification else _VW + _MEDIAN
    last = {} if classification else {"last value": 0.0}
    return [
        Peer("naive", "", _FORGETTING | last, naive),
        Peer("SGD", "scikit-learn", _SGD, sgd),
        Peer("VW", "vowpalwabbit", {setting: setting for setting in vw}, vowpal_wabbit),
    ]


def forests(*, classification: bool) -> list[Peer]:
    """Those of minutes, on few rows."""
    kind = "Classifier" if classification else "Regressor"
    settings = {
        "adaptive random forest": ("forest", f"ARF{kind}"),
        "Hoeffding adaptive tree": ("tree", f"HoeffdingAdaptiveTree{kind}"),
        "aggregated Mondrian forest": ("forest", f"AMF{kind}"),
    }
    return [Peer("river", "river", settings, river, rows=RIVER_ROWS)]


def scaled(panel: Panel) -> tuple[Any, float, float]:
    """Real targets less the mean of the first twentieth, over its deviation; these two."""
    few = panel.y[: panel.first]
    center, scale = float(few.mean()), float(few.std()) or 1.0
    return (panel.y - center) / scale, center, scale


def vowpal_wabbit(panel: Panel, setting: str) -> Any:
    """One pass over a text file, the task as one more feature or crossed (`tf`)."""
    from benchmarks import vw

    if panel.classification:
        y, center, scale = panel.y, 0.0, 1.0
        loss = "--loss_function logistic "
    else:
        (y, center, scale), loss = scaled(panel), ""
    stream = panel.judged()._replace(X=panel.X, y=y, task=panel.task)
    bits = 22 if "ff" in setting else vw.table_bits(stream)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "rows.vw")
        vw.write_text(stream, text)
        return center + scale * vw.answers(text, loss + setting, bits)


def sgd(panel: Panel, options: dict[str, Any]) -> Any:
    """scikit-learn's, of the columns and the same crossed with the task."""
    from sklearn import config_context
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    X = crossed(panel.X, panel.task)
    if panel.classification:
        y, center, scale = panel.y, 0.0, 1.0
        model, classes = SGDClassifier(loss="log_loss", **options), {"classes": [-1.0, 1.0]}
    else:
        (y, center, scale), model, classes = scaled(panel), SGDRegressor(**options), {}
    answers = np.zeros(len(y))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for i in range(len(y)):
            row = X[i : i + 1]
            if i:
                answers[i] = float((row @ model.coef_.ravel())[0] + model.intercept_[0])
            try:
                model.partial_fit(row, y[i : i + 1], **classes)
            except ValueError:  # it has diverged, and keeps its last answer
                answers[i + 1 :] = answers[i]
                break
    return center + scale * answers


def crossed(X: Any, task: Any, own: float = 1.0) -> Any:
    """The columns, and `own` times the same in a block of the task: (n, d + K d) CSR."""
    from scipy.sparse import hstack

    d = X.shape[1]
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    columns = X.indices + d * task[row].astype(np.int64)
    n_tasks = int(task.max()) + 1 if len(task) else 1
    block = csr_matrix((own * X.data, columns, X.indptr), shape=(X.shape[0], n_tasks * d))
    return hstack([X, block], format="csr")


def river(panel: Panel, model: tuple[str, str]) -> Any:
    """A forest on the first rows; trees get the task as a category, Mondrian trees as its number."""
    from importlib import import_module

    module, name = model
    category = {} if name.startswith("AMF") else {"nominal_attributes": ["task"]}
    learner = getattr(import_module(f"river.{module}"), name)(seed=1, **category)
    n_rows = min(RIVER_ROWS, len(panel.y))
    answers = base_rates(panel.y[:n_rows] > 0) if panel.classification else means(panel.y[:n_rows])
    for i, (row, task) in enumerate(zip(panel.X[:n_rows].toarray().tolist(), panel.task.tolist(), strict=False)):
        x = {f"x{j}": value for j, value in enumerate(row)} | {"task": float(task)}
        if panel.classification:
            if found := learner.predict_proba_one(x):
                p = np.clip(found.get(True, 0.0), np.exp(-CERTAIN), 1.0 - np.exp(-CERTAIN))
                answers[i] = np.log(p) - np.log1p(-p)
            learner.learn_one(x, bool(panel.y[i] > 0))
        else:
            found = learner.predict_one(x)
            answers[i] = answers[i] if found is None or i == 0 else found
            learner.learn_one(x, float(panel.y[i]))
    return answers


def naive(panel: Panel, keep: float) -> Any:
    """The mean of the task's rows, each weighed `keep` times as much as the next, and of two rows of the mean so far.

    Real targets forget these two as well, so that a `keep` of 0 is the task's last value.
    """
    labels = panel.classification
    y = (panel.y > 0).astype(np.float64) if labels else panel.y
    so_far = 1.0 / (1.0 + np.exp(-base_rates(panel.y > 0))) if labels else means(y)
    sums, rows = np.zeros(panel.task.max() + 1), np.zeros(panel.task.max() + 1)
    prior = np.full(len(rows), 2.0)
    answers = np.empty(len(y))
    for i, k in enumerate(panel.task.tolist()):
        answers[i] = (sums[k] + prior[k] * so_far[i]) / (rows[k] + prior[k])
        sums[k], rows[k] = keep * sums[k] + y[i], keep * rows[k] + 1.0
        prior[k] *= 1.0 if labels or keep == 1.0 else keep
    return np.log(answers) - np.log1p(-answers) if labels else answers
