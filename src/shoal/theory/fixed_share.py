"""The most that mixing by Bayes weights with a fixed share can lose against its best expert."""

import math


def fixed_share_regret_bound(n_experts: int, n_rows: int, *, share: float = 0.01) -> float:
    """Most log-loss that `HedgedSharing`'s mixture of all tasks can have above its best expert's.

    After every row each weight keeps (1 - share) of its Bayes posterior, so the product of the mixture's forecasts
    is at least (1/N) (1 - share)^T times that of any one expert:

        sum_t -ln p_t(y_t)  <=  min_i sum_t -ln p_t,i(y_t) + ln N + T ln(1/(1 - share))

    An expert that sleeps keeps its weight but for the share, as if it forecast what the mixture does. So the same holds
    against every expert i over the rows in which it is active:

        sum_{t: i active} -ln p_t(y_t)  <=  sum_{t: i active} -ln p_t,i(y_t) + ln N + T ln(1/(1 - share))

    Parameters
    ----------
    n_experts : int >= 1
        N.
    n_rows : int >= 0
        T.
    share : float in [0, 1)
        Share of the weights that goes back to the uniform prior after every row.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Herbster, Warmuth. Tracking the Best Expert. Machine Learning 32, 1998: fixed share, without switches.
    Freund, Schapire, Singer, Warmuth. Using and Combining Predictors that Specialize. STOC 1997: experts that sleep.

    Examples
    --------
    >>> from shoal.theory import fixed_share_regret_bound
    >>> print(f"{fixed_share_regret_bound(9, 1000):.2f}")
    12.25
    """
    if n_experts < 1 or n_rows < 0 or not 0 <= share < 1:
        raise ValueError(f"expected n_experts >= 1, n_rows >= 0, 0 <= share < 1; got {n_experts}, {n_rows}, {share}")
    return math.log(n_experts) - n_rows * math.log1p(-share)
