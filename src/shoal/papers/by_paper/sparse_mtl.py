"""Srijith, Shevade: Multi-Task Learning Using Shared and Task Specific Information (ICONIP 2012), section 4."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shoal.papers import data_sets, pictures
from shoal.papers.batch_protocols import explained, simulated
from shoal.papers.experiment import OF_NUMBERS, Data, Entrant, Experiment, Metric, Tuning, decades
from shoal.papers.learners import Spec

PAPER = "Srijith, Shevade, ICONIP 2012"

# ---- Basis vectors. The paper's counts are those that one prediction needs: its SparseSTL has 96, all rows of one
# task; so its SparseMTL has 18 common vectors and 42 of each task's own, not of all tasks together. -----------------

GIVEN = ("SparseMTL", "SparseCTL", "SparseSTL")  # their sizes are the paper's, RegMTL has what it takes
VECTORS = (
    Metric("vectors", "vectors a prediction", -1, ".0f", given=GIVEN),
    Metric("common", "common vectors", 0, ".0f", given=GIVEN),
    Metric("own", "own vectors a task", 0, ".0f", given=GIVEN),
    Metric("kept", "vectors in all", 0, ".0f"),
)
TOTAL = Metric("total", "common + own", 0, ".0f", given=GIVEN)  # Table 2 prints it once more

# ---- Table 1, section 4.1: classification ---------------------------------------------------------------------------

PEOPLE = {"n_tasks": 30, "n_questions": 16}  # 16 questions give 96 rows
SIMULATED = tuple(
    Data(f"{similarity} similarity", data_sets.conjoint, {"similarity": similarity}, measure={"similarity": similarity})
    for similarity in ("high", "low")
)
SIZES = {"high similarity": (18, 42), "low similarity": (12, 58)}  # common, and of a task's own: the paper's
BOTH = {name: {"n_common": common, "n_task": own} for name, (common, own) in SIZES.items()}
IN_ALL = {name: {"n_common": common, "n_task": 2} for name, (common, _) in SIZES.items()}  # 2 for each of 30 tasks
COMMON = {name: {"n_common": common + own} for name, (common, own) in SIZES.items()}

WIDTHS = tuple(2.0**i for i in range(-1, 12))  # of the Gaussian kernel, sigma: 0.5 to 2048, where it is linear
WIDE = tuple(float(f"{0.5 / sigma**2:.3g}") for sigma in WIDTHS)  # the same kernels by RegMTL's gamma
OF_BOTH = {"sigma": WIDTHS[1:7], "gamma": decades(1e-4, 1.0, 1), "lam": decades(1e-4, 1.0, 1)}
OF_COMMON = {"sigma": WIDTHS[:10], "gamma": decades(1e-4, 10.0, 1)}
OF_REGMTL = {"gamma": WIDE[2:], "mu": decades(0.01, 100.0, 1), "C": decades(1.0, 1e7, 1)}
OF_SVM = {**OF_REGMTL, "mu": decades(1e-3, 100.0, 1), "C": decades(0.1, 1e5, 1)}  # with the hinge loss
MU = decades(1e-6, 10.0, 4)


def only(grid: Mapping[str, Sequence[float]], *names: str) -> dict[str, Sequence[float]]:
    """The grid of a learner that has these parameters alone."""
    return {name: grid[name] for name in names}


CHOICES = (
    Entrant("RegMTL", "RegMTL", {"kernel": "rbf", "loss": "squared_hinge"}, OF_REGMTL),
    Entrant("SparseMTL", "SparseMTL", {"tol": 0.0}, OF_BOTH, BOTH),
    Entrant("SparseCTL", "SparseMTL", {"sharing": "common", "tol": 0.0}, OF_COMMON, COMMON),
    Entrant("SparseSTL", "SparseMTL", {"sharing": "task", "n_task": 96, "tol": 0.0}, only(OF_BOTH, "sigma", "lam")),
    Entrant("independent, linear", "IndependentTasks", {}, {"mu": MU}),
    Entrant("pooled, linear", "PooledTasks", {}, {"mu": MU}),
    Entrant("RegMTL, linear kernel", "RegMTL", {}, {"mu": OF_REGMTL["mu"], "C": decades(0.01, 10.0, 2)},
            variant_of="RegMTL"),
    Entrant("RegMTL with the hinge loss", "RegMTL", {"kernel": "rbf"}, OF_SVM, variant_of="RegMTL"),
    Entrant("RegMTL with the hinge loss and without sharing", "RegMTL", {"kernel": "rbf", "mu": 1e4},
            only(OF_SVM, "gamma", "C"), variant_of="SparseSTL"),
    Entrant("SparseMTL, the own vectors counted over all tasks", "SparseMTL", {"tol": 0.0}, OF_BOTH, IN_ALL,
            variant_of="SparseMTL"),
)  # fmt: skip

TABLE_1 = """
    RegMTL    8.16 964  9.79 1330
    SparseMTL 7.22 60   9.40 70
    SparseCTL 15.59 60  29.06 70
    SparseSTL 10.49 96  10.44 96"""


def _published_errors() -> Iterator[tuple[tuple[str, str, str], tuple[float, None]]]:
    for line in TABLE_1.split("\n")[1:]:
        name, *numbers = line.split()
        values = map(float, numbers)
        for data in SIZES:
            yield (name, data, "error"), (next(values), None)
            yield (name, data, "vectors"), (next(values), None)
    for data, (common, own) in SIZES.items():
        yield ("SparseMTL", data, "common"), (common, None)
        yield ("SparseMTL", data, "own"), (own, None)


CLASSIFICATION = Experiment(
    id="sparse_mtl/table1",
    title="Table 1: choices between products, tasks of high and of low similarity",
    source=f"{PAPER}, Table 1, section 4.1",
    protocol="as published",
    data=SIMULATED,
    entrants=CHOICES,
    metrics=(Metric("error", "error %", -1, ".2f", scale=100), *VECTORS),
    measure=simulated,
    options=PEOPLE,
    quick={"n_tasks": 4, "n_questions": 4, "repeats": 1},
    seeds=10,
    seconds=1460,
    published=dict(_published_errors()),
    tuning=Tuning(simulated, "error", -1, {**PEOPLE, "repeats": 2}, budget=30),
    figure=pictures.beside,
    champion="SparseMTL",
    own=("SparseMTL",),
    variant_seeds=10,
    notes=(
        "The paper's simulation is known by its source only (Toubia and others, through Evgeniou and Pontil): the "
        "spread of tastes is set so that pooled and independent learning err as often as in the paper.",
        "The sizes of SparseMTL's and SparseCTL's sets are the paper's, read as what one prediction needs. SparseSTL "
        "has all rows of a task, less the few that occur twice.",
        "The paper does not say which loss its RegMTL has: the squared hinge, as all the others, or the hinge, as that "
        "of Evgeniou and Pontil. Its vectors do not tell: on tasks of high similarity both are near the paper's "
        "number, on those of low similarity both are below it. With the hinge it errs more (see what was tried); the "
        "claims show both.",
        "The paper reports the best setting on the test rows, over 5 runs; here it is the best on two other "
        "simulations. Labels are noisy in test rows too.",
    ),
)

# ---- Table 2, section 4.2: regression -------------------------------------------------------------------------------


SCHOOL = Data("School", data_sets.school, {}, "school", quick={"schools": 15}, quick_rows=600)
RIDGES = {
    "estimator": [
        Spec("sklearn.linear_model.Ridge", {"alpha": alpha, "fit_intercept": False}) for alpha in decades(0.01, 1e3, 4)
    ]
}
OF_PUPILS = {"sigma": WIDTHS[:8], "gamma": decades(1e-4, 100.0, 1), "lam": decades(1e-4, 100.0, 1)}
OF_SVR = {"gamma": WIDE[:8], "mu": decades(0.01, 10.0, 2), "C": decades(0.1, 100.0, 2)}

EXAMS = (
    Entrant("RegMTL", "RegMTLRegressor", {"kernel": "rbf"}, OF_SVR),
    Entrant("SparseMTL", "SparseMTLRegressor", {"n_common": 65, "n_task": 10, "tol": 0.0}, OF_PUPILS),
    Entrant("SparseCTL", "SparseMTLRegressor", {"sharing": "common", "n_common": 75, "tol": 0.0},
            only(OF_PUPILS, "sigma", "gamma")),
    Entrant("SparseSTL", "SparseMTLRegressor", {"sharing": "task", "n_task": 300, "tol": 0.0},
            only(OF_PUPILS, "sigma", "lam")),
    Entrant("MTFL", "MTFL", {"loss": "squared"}, {"gamma": decades(0.01, 100.0, 4)}),
    Entrant("TraceNorm", "TraceNorm", {"loss": "squared"}, {"rho": decades(0.1, 100.0, 4)}),
    Entrant("independent ridge", "IndependentTasks", {}, RIDGES),
    Entrant("pooled ridge", "PooledTasks", {}, RIDGES),
    Entrant("RegMTL, least squares", "RegMTLRegressor", {"kernel": "rbf", "loss": "squared"},
            {**OF_SVR, "C": decades(0.01, 1.0, 2)}, variant_of="RegMTL"),
    Entrant("SparseMTL, one own vector a school", "SparseMTLRegressor", {"n_common": 65, "n_task": 1, "tol": 0.0},
            OF_PUPILS, variant_of="SparseMTL"),
)  # fmt: skip

TABLE_2 = {"RegMTL": (0.3275, 11330), "SparseMTL": (0.3282, 75), "SparseCTL": (0.2833, 75), "SparseSTL": (0.2710, None)}


def _published_variance() -> Iterator[tuple[tuple[str, str, str], tuple[float, None]]]:
    for name, (value, vectors) in TABLE_2.items():
        yield (name, "School", "within"), (value, None)
        if vectors is not None:
            yield (name, "School", "vectors"), (vectors, None)
    yield ("SparseMTL", "School", "common"), (65, None)
    yield ("SparseMTL", "School", "own"), (10, None)
    yield ("SparseMTL", "School", "total"), (75, None)


REGRESSION = Experiment(
    id="sparse_mtl/table2",
    title="Table 2: exam scores of 139 schools",
    source=f"{PAPER}, Table 2, section 4.2",
    protocol="as published",
    data=(SCHOOL,),
    entrants=EXAMS,
    metrics=(
        Metric("within", "explained within schools", +1),
        Metric("explained", "explained variance", +1),
        *VECTORS,
        TOTAL,
    ),
    measure=explained,
    seeds=10,
    seconds=840,
    published=dict(_published_variance()),
    tuning=Tuning(explained, "explained", +1, budget=24),
    variant_seeds=3,
    figure=partial(pictures.beside, n_metrics=2),
    champion="SparseMTL",
    own=("SparseMTL",),
    overlap={"School": 1 / 3},
    notes=(
        "The paper defines explained variance as 1 - (sum squared error)/(total variance). With the total around one "
        "mean of all schools, every method is above its published number, by about the same factor of what is left "
        "unexplained; with the total around the mean of each school's training scores (what is explained within "
        "schools) ours come close to the published numbers: the paper's reading must be this one or one like it.",
        "The sets have the paper's sizes, 65 common vectors and 10 of each school's own; pupils with the same features "
        "are one vector, which is why SparseSTL needs fewer than a school has pupils.",
        "RegMTL is support vector regression, as its count of vectors in the paper tells. Rows as Bakker and Heskes "
        "encoded them with a constant; scores less their training mean; one held-out split chooses.",
    ),
)

# ---- controls: sizes found by the stop rule, error against size, one pass -------------------------------------------

FOUND = replace(
    CLASSIFICATION,
    id="sparse_mtl/found",
    title="How many vectors the stop rule of SparseMTL finds",
    source=f"controls of {PAPER}, Table 1",
    entrants=(
        Entrant(
            "SparseMTL, sizes found",
            "SparseMTL",
            {"sigma": 4.0, "gamma": 0.1, "lam": 0.1, "tol": 3e-4, "n_common": 96, "n_task": 96},
        ),
    ),
    metrics=(
        Metric("error", "error %", -1, ".2f", scale=100),
        Metric("common", "common vectors", 0, ".1f"),
        Metric("own", "own vectors a task", 0, ".1f"),
        Metric("kept", "vectors in all", 0, ".0f"),
    ),
    published={
        ("SparseMTL, sizes found", data, name): (float(size), None)
        for data, sizes in SIZES.items()
        for name, size in zip(("common", "own"), sizes, strict=True)
    },
    tuning=None,
    figure=None,
    champion="",
    own=(),
    seeds=15,
    seconds=60,
    shuffles=False,
    repeats=True,
    notes=("The relative decrease at which the stop rule stops is not printed; here 3e-4.",),
)
FOUND_SCHOOL = replace(
    REGRESSION,
    id="sparse_mtl/found-school",
    title="How many vectors the stop rule of SparseMTL finds on School",
    source=f"controls of {PAPER}, Table 2",
    entrants=(
        Entrant(
            "SparseMTL, sizes found",
            "SparseMTLRegressor",
            {"sigma": 8.0, "gamma": 1.0, "lam": 1.0, "tol": 3e-4, "n_common": 150, "n_task": 30},
        ),
    ),
    metrics=(*REGRESSION.metrics[:2], *FOUND.metrics[1:]),
    tuning=None,
    figure=None,
    champion="",
    own=(),
    seeds=10,
    seconds=110,
    shuffles=False,
    repeats=True,
    published={
        ("SparseMTL, sizes found", "School", "common"): (65.0, None),
        ("SparseMTL, sizes found", "School", "own"): (10.0, None),
    },
    notes=("The stop rule is that of the simulations; at most 150 common vectors and 30 of a school's own.",),
)

STEPS = ((2, 2), (4, 4), (9, 5), (18, 10), (18, 42))  # common, and of a task's own
CURVE = replace(
    FOUND,
    id="sparse_mtl/sizes",
    title="Error against the number of basis vectors, per prediction and kept",
    entrants=tuple(
        Entrant(
            f"{common} + {own}",
            "SparseMTL",
            {"sigma": 4.0, "gamma": 0.01, "lam": 0.03, "tol": 0.0, "n_common": common, "n_task": own},
        )
        for common, own in STEPS
    ),
    metrics=(*FOUND.metrics[:1], Metric("vectors", "vectors a prediction", -1, ".0f"), FOUND.metrics[-1]),
    published={},
    measure=simulated,
    seeds=5,
    seconds=90,
    notes=("Sizes are given: so many common vectors and so many of each task's own.",),
)

ONE_PASS = replace(
    REGRESSION,
    id="sparse_mtl/one-pass",
    title="One pass over School: the default, independent and pooled SGD with the squared loss",
    source=f"controls of {PAPER}, Table 2",
    entrants=(
        *(
            Entrant(
                f"{relation}, squared SGD", "MultitaskRegressor", {"relation": relation}, {"eta": decades(1e-5, 1.0, 4)}
            )
            for relation in ("independent", "pooled")
        ),
        *OF_NUMBERS,
    ),
    metrics=REGRESSION.metrics[:2],
    published={},
    champion="",
    figure=None,
    seconds=60,
    notes=("Each learns the training rows once, in order; the batch learners of Table 2 solve for their minimum.",),
)

EXPERIMENTS = (CLASSIFICATION, REGRESSION, FOUND, FOUND_SCHOOL, CURVE, ONE_PASS)
