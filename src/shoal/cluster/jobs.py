"""Independent jobs, such as the trials of a search, on a Ray cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config

from shoal.cluster.actors import start_ray


@contextmanager
def jobs_on(address: str | None = None) -> Iterator[None]:
    """Run joblib's jobs on all cores of the Ray at an address, or of one on this machine, while the block lasts.

    That serves `shoal.evaluation.search`, `shoal.papers`, and scikit-learn's own searches.

    Raises
    ------
    ValueError
        If no Ray answers at the address.
    """
    start_ray(address)
    from ray.util.joblib import register_ray

    register_ray()
    with parallel_config(backend="ray"):
        yield
