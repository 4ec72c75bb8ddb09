"""Kernels as plain Python, for a debugger, `print` and `make mutants`.

Enable it before anything imports `shoal.engine`.

    PYTHONPATH=tools .venv/bin/python -m pytest -p plain_kernels -n 0 -k "OSMTL and chunking" --pdb
"""

from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)  # before tests/conftest.py is imported
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """As a plugin of pytest it is enabled at once."""
    enable()
    early_config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")  # compiled code overflows silently


def enable() -> None:
    """From now on `@kernel` compiles nothing; intrinsics are what they stand for."""
    import numba as untyped
    import numpy as np

    from shoal.engine import compile, handles, intrinsics

    found: Any = compile
    numba: Any = untyped
    numba.njit = found.kernel = lambda function=None, /, **_: function or (lambda other: other)
    found.call = lambda function, rounds, settings, state, out, _, *more: function(rounds, settings, state, out, *more)
    found.by_kind = lambda function, _, *arguments: function(*arguments)

    def doubles(words: Any, i: Any) -> Any:
        return words[int(i) : int(i) + 2].view(np.float64)

    def equal(array: Any, i: Any, value: Any) -> Any:
        return np.uint64(sum(1 << j for j, one in enumerate(array[int(i) : int(i) + intrinsics.GROUP]) if one == value))

    def set_number(words: Any, i: Any, number: float) -> None:
        doubles(words, i)[0] = number

    def record_products(width: int, n_kept: int) -> Any:
        def products(n: int, x: Any, place: Any, records: Any, kept: Any, room: int, sums: Any) -> None:
            found = records.reshape(-1, width)[place[:n]]
            sums[:width] = x[:n] @ found.astype(np.float64)
            for column in range(n_kept):
                kept.reshape(-1)[room * column : room * column + n] = found[:, width - 1 - column]

        return products

    def record_moves(pattern: tuple[int, ...], keep: tuple[float, ...]) -> Any:
        def move(n: int, place: Any, columns: Any, room: int, scales: Any, records: Any) -> None:
            table = records.reshape(-1, len(pattern))
            for i in range(n):
                numbers = [0.0 if c == intrinsics.STAYS else columns.reshape(-1)[room * c + i] for c in pattern]
                table[place[i]] = keep * table[place[i]] + scales[: len(pattern)] * numbers

        return move

    as_python: Any = handles
    as_python.whole = lambda held: getattr(held, "of", held)  # a field of a handle is the tuple itself here
    changed: Any = intrinsics
    changed.prefetch, changed.equal = lambda array, i: None, equal
    changed.number_in, changed.set_number = lambda words, i: float(doubles(words, i)[0]), set_number
    changed.on_stack = lambda: np.empty(intrinsics.SCRATCH, np.uint64)
    changed.lowest_bit = lambda bits: np.uint64((int(bits) & -int(bits)).bit_length() - 1)
    changed.record_products, changed.record_moves = record_products, record_moves
