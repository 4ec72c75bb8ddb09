"""What the library says of its options, the program says of its own."""

from __future__ import annotations

import pytest

from shoal.cli.options import in_options


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("sort= needs time=, the column", "--sort needs --time, the column"),
        ("hash_bits=60, expected 1 to 24", "--hash-bits 60, expected 1 to 24"),
        ("which numeric=['price'] would read", "which --numeric 'price' would read"),
        ("labels=['a', 'b'], but", "--labels ['a', 'b'], but"),
        ("both in text= and in date=", "both in --text and in --date"),
        ("(kind='multiclass' takes more)", "(--classify takes more)"),
        ("another; pass classes=[...]", "another; pass --labels"),
        ("label 'time=5' is a third one", "label 'time=5' is a third one"),  # what stands in a file is no option
        ("context=1, the time is 5", "context=1, the time is 5"),
    ],
)
def test_options_are_called_as_they_are_typed(said: str, expected: str) -> None:
    assert in_options(said) == expected
