"""The library's messages on the command line: an option that they write as `date_format=` is `--date-format` there."""

from __future__ import annotations

import re
from dataclasses import fields

from shoal.files import ReadOptions

SWITCHES = {"kind='multiclass'": "--classify", "kind='regression'": "--regression", "classes=[...]": "--labels"}
_NAMES = "|".join(field.name for field in fields(ReadOptions))
_OPTION = re.compile(
    rf"""{"|".join(map(re.escape, SWITCHES))}|"""
    rf"""(?<![\w.'"-])(?P<name>{_NAMES})=(?P<one>\[(?P<value>'[^']*'|"[^"]*")\])?"""
)


def in_options(text: str) -> str:
    """The text as the command line would say it."""
    return _OPTION.sub(lambda found: _as_typed(found, text[found.end() : found.end() + 1]), text)


def _as_typed(found: re.Match[str], then: str) -> str:
    if found["name"] is None:
        return SWITCHES[found[0]]
    option = f"--{found['name'].replace('_', '-')}"
    if found["one"] is not None:
        return f"{option} {found['value']}"
    return option if then in " ,.)" else f"{option} "
