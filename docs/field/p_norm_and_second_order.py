"""
p-norms and second order: which features, and in which units
============================================================

A Perceptron adds the rows on which it errs. This is slow in two cases: few of many features matter, or features come in
different units. The p-norm Perceptron helps in the first case, the second-order Perceptron in the second. Both have
forms for many tasks :footcite:p:`cavallanti2010`.
"""

# %%
# The idea in a picture
# ---------------------
# The rules of ten tasks look at some of 100 features. With few of them the p-norm errs least: it raises sums of rows to
# a power, so that small ones, which are mostly noise, hardly count. With many it loses.

import matplotlib.pyplot as plt
import numpy as np

from shoal import MultitaskPerceptron, PNormPerceptron, SecondOrderPerceptron

RELEVANT = [3, 9, 27, 81]
rng = np.random.default_rng(0)
X, task = rng.choice([-1.0, 1.0], size=(2000, 100)), rng.integers(10, size=2000)
figure, ax = plt.subplots(figsize=(7, 3))
for name, kind in {"Perceptron": MultitaskPerceptron, "p-norm": PNormPerceptron}.items():
    errors = []
    for n in RELEVANT:
        y = np.where(X[:, :n].sum(axis=1) > 0, 1, -1)
        errors.append(((kind().test_then_train(X, y, task) >= 0) != (y > 0)).mean())
    print(f"{name:10} " + ", ".join(f"{n} features {error:.3f}" for n, error in zip(RELEVANT, errors)))
    ax.plot(RELEVANT, errors, marker="o", label=name)
ax.set(xscale="log", xlabel="features that matter, of 100", ylabel="error", xticks=RELEVANT, xticklabels=RELEVANT)
ax.minorticks_off()
ax.legend()
figure.tight_layout()

# %%
# The formula
# -----------
# V is the sum of steps, a column a task. The weights are the gradient of half its squared p-norm:
#
# .. math::
#    W = \nabla \tfrac12 \lVert V \rVert_p^2, \qquad
#    W_{aj} = \mathrm{sign}(V_{aj}) \frac{|V_{aj}|^{p-1}}{\lVert V \rVert_p^{p-2}}, \qquad
#    f = \sum_j B_{j i} \langle w_j, x \rangle
#
# With p = 2 this is a Perceptron; p = 2 ln max(K, d), the default, makes the bound grow with the logarithm of the
# number of features alone.
#
# The second-order Perceptron keeps the correlations of the rows on which it erred, and divides by them. With
# :math:`\phi` the row in the block of its task, which :math:`B` spreads to the others, and S the rows of mistakes:
#
# .. math:: f = v^\top \left(a I + S S^\top + \phi \phi^\top\right)^{-1} \phi, \qquad
#           \text{on a mistake } v \leftarrow v + y \phi,\; S \leftarrow [S, \phi]
#
# A feature of large values gets a small weight by itself, so units matter little.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/p_norm_perceptron.py
#    :pyobject: power
#    :caption: shoal/online/p_norm_perceptron.py
#
# .. literalinclude:: /../tests/twins/p_norm_perceptron.py
#    :pyobject: gradient
#    :caption: tests/twins/p_norm_perceptron.py, the plain form that tests hold it to
#
# .. literalinclude:: /../src/shoal/online/second_order_perceptron/primal.py
#    :pyobject: look
#    :caption: shoal/online/second_order_perceptron/primal.py
#
# .. literalinclude:: /../tests/twins/second_order.py
#    :pyobject: primal
#    :caption: tests/twins/second_order.py, with the square root of the matrix written down
#
# Units
# -----
# One feature is 20 times as large as the others.

from shoal.datasets import make_related_tasks

data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
scaled = data.X * np.append(20.0, np.ones(29))
for name, rows in (("as they are", data.X), ("one 20 times as large", scaled)):
    for learner in (MultitaskPerceptron(), SecondOrderPerceptron()):
        decisions = learner.test_then_train(rows, data.y, data.task)
        print(f"{name:22} {learner!r:24} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")

# %%
# History
# -------
# The Perceptron is of Rosenblatt (1958). Grove, Littlestone and Schuurmans (1997) and Gentile (2003) found the p-norm
# family, which lies between it and Winnow: additive steps at one end, multiplicative ones at the other. The
# second-order Perceptron of Cesa-Bianchi, Conconi and Gentile (2005) came from the forecaster of Vovk and of Azoury
# and Warmuth for least squares. The paper of 2010 gives both a matrix of tasks.
#
# What the paper claims, what we found
# ------------------------------------
# The paper has bounds for both and no experiment.
#
# .. claims:: cavallanti-10 cavallanti-13
#
# Exercises
# ---------
# 1. With p = 2, does ``PNormPerceptron`` equal ``MultitaskPerceptron``? Which variant does?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    As printed in the paper it predicts with :math:`B^2` instead of B. The variant "sqrt" transforms rows by
#    :math:`B^{1/2}` and predicts with B:
#
#    >>> import numpy as np
#    >>> from shoal import MultitaskPerceptron, PNormPerceptron
#    >>> from shoal.datasets import make_related_tasks
#    >>> data = make_related_tasks(n_rows=500)
#    >>> plain = MultitaskPerceptron().test_then_train(data.X, data.y, data.task)
#    >>> for variant in ("printed", "sqrt"):
#    ...     found = PNormPerceptron(p=2.0, variant=variant).test_then_train(data.X, data.y, data.task)
#    ...     print(variant, bool(np.array_equal(found >= 0, plain >= 0)))
#    printed False
#    sqrt True
#
# 2. The primal form of the second-order Perceptron keeps a matrix of size (Kd)², the dual form one of size n², for n
#    mistakes. Which is smaller for 100 tasks, 50 features and 2,000 mistakes?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    The dual one:
#
#    >>> (100 * 50) ** 2, 2_000 ** 2
#    (25000000, 4000000)
#
# References
# ----------
# .. footbibliography::
