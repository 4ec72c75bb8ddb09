"""What the library says in terms of Python's options, in terms of the program's."""

from __future__ import annotations

import re

# How the library writes an option -> how the program does.
OPTIONS = (
    (r"which (numeric|date) '([^']+)' would read", r"which --\1 '\2' would read"),
    (r"with a date_format such as", "and --date-format such as"),
    (r"or what date_format says", "or what --date-format says"),
    (r"\bdate_format '", "--date-format '"),
    (r"\(sort puts", "(--sort puts"),
    (r"\bsort needs time\b", "--sort needs --time"),
    (r"kind multiclass takes", "--classify takes"),
    (r"kind regression any number", "--regression any number"),
    (r"^labels is \[", "--labels is ["),
    (r"^hash_bits is", "--hash-bits is"),
    (r"^(decimal|delimiter) is", r"--\1 is"),
    (r"is both in (\w+) and in (\w+),", r"is both in --\1 and in --\2,"),
)  # fmt: skip


def in_options(text: str) -> str:
    """The text as the command line would say it."""
    for found, said in OPTIONS:
        text = re.sub(found, said, text)
    return text
