"""The most that Bayes weights over relations and steps can lose against the best of them."""

import math

from shoal.model.parameters import non_negative, read, whole
from shoal.online.bayes_multitask import N_MODELS


def bayes_regret_bound(n_models: int = N_MODELS, *, width: float = 1.0) -> float:
    """Most that ``MultitaskPerceptron(relation="auto", eta="auto")`` can lose more than its best model, in all.

    The product of the mixture's forecasts is the mean of the products of its N models' forecasts, for any rows::

        sum_t -ln p_t(y_t)  =  -ln (1/N) sum_j prod_t p_tj(y_t)  <=  min_j sum_t -ln p_tj(y_t) + ln N

    With Theorem 1 for the model of the best b, the mixture has the regret of the b that fits the tasks, up to ln N,
    without knowing it. For `MultitaskRegressor`, with forecasts and targets clipped to the range [low_t, high_t] of 0
    and the targets before, exp(-(f - y)^2 / (2 D^2)) is concave where D is at least the range's width, so that::

        sum_t (f_t - y_t)^2 / 2  <=  min_j sum_t (f_tj - y_t)^2 / 2 + D^2 ln N

    with the last D, since rates 1/D^2 that fall can only shrink the mean's logarithm over its rate.

    Parameters
    ----------
    n_models : int >= 1
        N, 24 if both are left to the data: six b, four eta.
    width : float >= 0
        1 for labels; for real targets D.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Vovk. Competitive on-line statistics. International Statistical Review 69, 2001. The b that it learns is the open
    problem with which Cavallanti, Cesa-Bianchi, Gentile (JMLR 11, 2010) end; the regret of a known b with convex
    losses: Cesa-Bianchi, Laforgue, Paudice, Pontil. Multitask Online Mirror Descent. TMLR 2022.

    Examples
    --------
    >>> from shoal.theory import bayes_regret_bound
    >>> print(f"{bayes_regret_bound():.2f}")
    3.18
    """
    read({"n_models": whole(1), "width": non_negative()}, {"n_models": n_models, "width": width})
    return width * width * math.log(n_models)
