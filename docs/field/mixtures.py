"""
Mixtures of learners: whom to believe, task by task
===================================================

Is it better to share or not? With which steps, and in which way? All of this can be asked of the stream. Let several
learners forecast each row, weigh them by how well they have forecast so far, and answer by their weighted mean. Such a
mixture is hardly worse than the best of its learners, and nobody has to know beforehand which one that is.

`HedgedSharing`, the default, mixes 27 learners of labels in this way, three times over. `Guarded` mixes two,
`OutsideForecast` those of others with one of ours.
"""

# %%
# The idea in a picture
# ---------------------
# Ten tasks have one rule for 3,000 rows; then each gets a rule of its own. One model for all is best at first, a model
# a task later. The lines are the weights of both in a mixture of a few lines.

import matplotlib.pyplot as plt
import numpy as np

from shoal import HedgedSharing, MultitaskPerceptron

rng = np.random.default_rng(0)
X, task = rng.normal(size=(8000, 10)) / np.sqrt(10), rng.integers(10, size=8000)
rules = rng.normal(size=(11, 10))
rule = np.where(np.arange(8000) < 3000, 10, task)  # of a row: the last one is common
y = np.where(np.einsum("nd,nd->n", X, rules[rule]) + 0.2 * rng.normal(size=8000) > 0, 1, -1)
relations = ("independent", "pooled")
experts = [MultitaskPerceptron(relation=relation, loss="logistic") for relation in relations]
p = 1 / (1 + np.exp(-np.array([expert.test_then_train(X, y, task) for expert in experts])))


def mixed(p: np.ndarray, y: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The mixture's probability of 1, and the weights before each row."""
    a, answers, weights = np.full(len(p), 1 / len(p)), np.empty(len(y)), np.empty(p.shape)
    for i in range(len(y)):
        weights[:, i], answers[i] = a, a @ p[:, i]
        a = a * (p[:, i] if y[i] > 0 else 1 - p[:, i])  # Bayes' rule ...
        a = (1 - share) * a / a.sum() + share / len(p)  # ... and a part goes back
    return answers, weights


SHARE = 0.005
answers, weights = mixed(p, y, SHARE)
figure, ax = plt.subplots(figsize=(7, 3))
for relation, line in zip(relations, weights):
    ax.plot(line, label={"independent": "a model a task", "pooled": "one model for all"}[relation])
ax.axvline(3000, color="gray", linestyle=":")
ax.set(xlabel="rows; then each task has a rule of its own", ylabel="weight", ylim=(0, 1))
ax.legend(loc="center right")
figure.tight_layout()


def log_loss(p: np.ndarray) -> str:
    """Of the rows before and after the change."""
    losses = -np.log(np.where(y > 0, p, 1 - p))
    return f"log-loss {losses[:3000].mean():.3f}, then {losses[3000:].mean():.3f}, in all {losses.mean():.3f}"


for name, one in [*zip(relations, p), ("mixture", answers), ("without share", mixed(p, y, 0.0)[0])]:
    print(f"{name:14} {log_loss(one)}")

# %%
# The formula
# -----------
# Learner j forecasts that the label which comes has the probability :math:`P_j`. Weights move by Bayes' rule, and a
# part s of them goes back to the prior:
#
# .. math:: a_j \leftarrow (1 - s)\, \frac{a_j P_j}{\sum_i a_i P_i} + \frac{s}{N}
#
# With s = 0 this is the posterior of "learner j is right for ever", and the sum of log-losses is at most that of the
# best learner plus ln N. But then a learner that was bad for long needs as long to come back. With the *fixed share* s
# :footcite:p:`herbster1998` no weight falls below s/N. The price is :math:`T \ln \frac{1}{1 - s}` in T rows; what one
# gets is a bound against the best sequence of learners that changes now and then.
#
# A learner may also *sleep*: one for short rows has nothing to say about long ones. It is left out of the mean then,
# and keeps its weight :footcite:p:`freund1997`.
#
# A mean of probabilities is never surer than its surest learner. Two learners that know different things should be: so
# the default mixes a second time, by a regression on the logits :math:`z_j` of all learners,
#
# .. math:: p = \sigma\left(\sum_j w_j z_j\right), \qquad w \leftarrow w + P z \,(y - p),
#
# with a covariance P as in a Newton step. It begins as the first mixture, for few rows cannot teach so many weights.
# :doc:`/hedged-sharing` has every step of the default, and what it costs to leave one out.
#
# The code
# --------
#
# .. literalinclude:: /../src/shoal/online/hedged_sharing/mixing.py
#    :pyobject: mixture
#    :caption: shoal/online/hedged_sharing/mixing.py: the mean of those that do not sleep
#
# .. literalinclude:: /../src/shoal/online/hedged_sharing/mixing.py
#    :pyobject: bayes
#    :caption: shoal/online/hedged_sharing/mixing.py: Bayes' rule and the share
#
# .. literalinclude:: /../tests/twins/hedged_sharing/twin.py
#    :pyobject: Stack
#    :caption: tests/twins/hedged_sharing/twin.py: a regression of the second mixing, plain
#
# What the default believes
# -------------------------
# Its mixture has weights in each task. The names of its learners say how they share.

learner = HedgedSharing()
for name, rows in (("one rule", slice(0, 3000)), ("own rules", slice(3000, 8000))):
    learner.partial_fit(X[rows], y[rows], task[rows])
    shares = {
        way: learner.weights_[:, [way in expert for expert in learner.experts_]].sum(axis=1).mean()
        for way in ("pooled", "own")
    }
    print(f"{name:9} " + ", ".join(f"{way} {share:.2f}" for way, share in shares.items()))
decisions = HedgedSharing().test_then_train(X, y, task)  # logits
print(f"{'default':14} {log_loss(1 / (1 + np.exp(-decisions)))}")

# %%
# History
# -------
# Littlestone and Warmuth (1994) and Vovk (1990) asked for a forecaster that is hardly worse than the best of many,
# whatever happens. Herbster and Warmuth let the best one change, Freund, Schapire, Singer and Warmuth let some sleep.
# To train a model on the forecasts of others is the *stacking* of Wolpert (1992); by online Newton steps it costs a
# matrix, and a row no more than its square.
#
# What the papers claim, what we found
# ------------------------------------
# Cavallanti, Cesa-Bianchi and Gentile end with an open problem: to adapt how much is shared while the stream runs
# :footcite:p:`cavallanti2010`. Mixtures are one answer. In
# `our own leaderboard <../reproduction.html#leaderboard-online>`__ the default is first on all six data sets;
# :doc:`/choose` has the places of the others.
#
# Exercises
# ---------
# 1. One learner always gives what happens 0.9, the other 0.5. What is the weight of the first one after three rows, and
#    what if one row in a hundred goes back?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    >>> a, b = 0.5, 0.5
#    >>> for _ in range(3):
#    ...     total = 0.9 * a + 0.5 * b
#    ...     a, b = 0.99 * 0.9 * a / total + 0.005, 0.99 * 0.5 * b / total + 0.005
#    >>> round(0.9**3 / (0.9**3 + 0.5**3), 3), round(a, 3)
#    (0.854, 0.848)
#
# 2. By how much can the first mixing of 27 learners be worse than its best one, in nats a row, over 10,000 rows?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    >>> from shoal.theory import fixed_share_regret_bound
#    >>> round(fixed_share_regret_bound(27, 10_000, share=0.005) / 10_000, 4)
#    0.0053
#
#    Nearly all of it is the price of the share: ln 27 is 3.3 nats once.
#
# 3. Two learners see different halves of a row's features, and each has the logit 2. Which probability is right if the
#    halves say independent things and labels are balanced, and which has the mean?
#
# .. admonition:: Solution
#    :collapsible: closed
#
#    Evidence adds up: the logit is 4. The mean stays at the probability of logit 2, and the regression finds the sum.
#
#    >>> import math
#    >>> [round(1 / (1 + math.exp(-logit)), 3) for logit in (4, 2)]
#    [0.982, 0.881]
#
# References
# ----------
# .. footbibliography::
