"""Random numbers whose generator is part of a learner's state: saved and continued like everything learned.

A generator is one array of three counters: the seed, and how many numbers each of two streams has given. Streams do
not disturb each other, so that how rows are cut into chunks changes no draw. The numbers are splitmix64's.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel

SEED, QUERIES, POINTS = 0, 1, 2  # positions: the seed, the draws for label queries, those of a feature map

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: consecutive multiples lie far apart
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_TOP_53: Final = np.uint64(11)


@kernel(alone=False)
def mixed(z: Any) -> Any:
    """The finaliser of splitmix64: a bijection in which every input bit moves every output bit."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@kernel(entry="too", allocates=True)
def uniform(random: NDArray[np.uint64], stream: int) -> float:
    """The stream's next number, uniform on [0, 1)."""
    random[stream] += np.uint64(1)
    start = mixed(random[SEED] + np.uint64(stream) * GOLDEN)
    return np.float64(mixed(start + random[stream] * GOLDEN) >> _TOP_53) * 2.0**-53
