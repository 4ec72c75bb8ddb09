"""How old stored results are: a page says "Printed at COMMIT.", and the build adds what has changed since.

What a learner answers is compared in the guard's numbers of that commit and of now. Sections that a change makes older
than their code are listed at the end of the build, too; they are no error of it, for a long benchmark is rerun when its
numbers are wanted, not with each change.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import shoal

ROOT = Path(__file__).resolve().parents[1]
GUARD = "benchmarks/guard/numbers.json"
NEW_LINE = "\n"
PAGES = ("benchmarks", "odd-rows")
PRINTED = re.compile(r"^Printed at ([0-9a-f]{7,40})\.$", re.M)


def git(*words: str) -> str:
    """What git prints; nothing where it is not, or does not know the commit."""
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@cache
def guarded(commit: str) -> dict[str, tuple[str, str]]:
    """Error and loss of each learner in the guard's workload, to six digits."""
    text = git("show", f"{commit}:{GUARD}")
    learners: dict[str, Any] = json.loads(text)["learners"] if text else {}
    return {name: (f"{one['error']:.6g}", f"{one['loss']:.6g}") for name, one in learners.items()}


def changed(commit: str, names: set[str]) -> list[str]:
    """Learners whose error or loss is another one than at a commit."""
    then, now = guarded(commit), guarded("HEAD")
    return sorted(name for name in names & then.keys() & now.keys() if then[name] != now[name])


def age(commit: str, section: str) -> tuple[str, list[str]]:
    """What a section says of its age, and the learners in it that answer otherwise now."""
    day = git("show", "-s", "--format=%cs", commit)
    if not day:
        return f"Printed at {commit}.", []
    n = int(git("rev-list", "--count", f"{commit}..HEAD", "--", "src/shoal"))
    learners = {name for name in shoal.__all__ if re.search(rf"\b{name}\b", section)}
    found = changed(commit, learners)
    commits = "one commit has" if n == 1 else f"{n} commits have"
    said = f"Printed at {commit}, {day}"
    if n:
        said += f"; {commits} changed the library since"
        said += f", and with it errors or losses of {', '.join(f'`{name}`' for name in found)}" if found else ""
    return said + ".", found


def add_ages(app: Sphinx, page: str, source: list[str]) -> None:
    """Complete what the sections of a page say."""
    if page not in PAGES:
        return
    parts = re.split(r"^(?=## )", source[0], flags=re.M)
    for i, section in enumerate(parts):
        for commit in dict.fromkeys(PRINTED.findall(section)):
            said, found = age(commit, section if i else source[0])
            warn(f"{page}, {section.partition(NEW_LINE)[0].strip('# ')}", commit, found)
            parts[i] = parts[i].replace(f"Printed at {commit}.", said)
    source[0] = "".join(parts)


def warn(place: str, commit: str, found: list[str]) -> None:
    """Say where learners answer otherwise than in stored results."""
    if found:
        print(f"older than the code: {place}, {commit}: {', '.join(found)}", file=sys.stderr)


def look_at_reproduction(app: Sphinx) -> None:
    """Warn of the papers' tables, too, which `shoal reproduce` wrote with the commit of each."""
    text = (ROOT / "docs" / "reproduction.html").read_text("utf-8")
    for section in re.split(r"<section ", text)[1:]:
        commits = re.findall(r"shoal \S+ at ([0-9a-f]{7})", section)
        if commits:
            name = re.match(r'id="(.*?)"', section)
            warn(f"reproduction, {name[1] if name else ''}", commits[-1], age(commits[-1], section)[1])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", add_ages, priority=400)  # before names become links
    app.connect("builder-inited", look_at_reproduction)
    app.connect("env-get-outdated", lambda *_: list(PAGES))  # they grow old without being changed
    return {"parallel_read_safe": True, "parallel_write_safe": True}
