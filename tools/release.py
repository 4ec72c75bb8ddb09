"""All steps of a release but the upload. The first that fails ends it, and says what to mend.

The tree is clean; pyproject.toml, CHANGELOG.md, CITATION.cff and the BibTeX of `shoal cite` say one version, the last
three one date, which is that of the tag; the sdist and the wheel are built, and `twine check --strict` finds no fault;
the wheel is installed into a fresh environment from the package index; README's Python prints there what README says.
Usage:

    python tools/release.py          everything, and nothing is kept but dist/
    python tools/release.py --tag    and the commit gets the version's tag, in this clone alone
"""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from built_package import ROOT, build

DIST = ROOT / "dist"
EXAMPLE = re.compile(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", re.S)  # Python, and what it prints
PLACES = {  # where a version stands, and then its date
    "CHANGELOG.md": r"^## (\d[^\s,]*), (\S+)",
    "CITATION.cff": r"^version: (\S+)\ndate-released: (\S+)",
    "src/shoal/cli/commands/references.bib": r"^  version = \{(.*?)\},[^@]*?  date = \{(.*?)\}",
}


def run(*command: object, cwd: Path = ROOT) -> str:
    """What a command prints; one that fails ends the release."""
    ended = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"release: {' '.join(map(str, command))[:100]} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def version() -> tuple[str, str]:
    """The version in pyproject.toml and its date, if all other places say the same."""
    said = str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    dates = {}
    for place, pattern in PLACES.items():
        found = re.search(pattern, (ROOT / place).read_text(encoding="utf-8"), re.M)
        if found is None or found[1] != said:
            sys.exit(f"release: pyproject.toml has version {said}, {place} {found[1] if found else 'none with a date'}")
        dates[place] = found[2]
    if len({*dates.values()}) > 1:
        sys.exit(f"release: {said} has several dates: {', '.join(f'{day} in {place}' for place, day in dates.items())}")
    return said, dates["CITATION.cff"]


def try_readme(wheel: Path, said: str) -> None:
    """README's Python in a fresh environment, whose packages come from the index, prints what README says."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "environment", with_pip=True)
        python = folder / "environment" / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[cli,data]")
        found = run(python.with_name("shoal"), "--version", cwd=folder).strip()
        if found != f"shoal {said}":
            sys.exit(f"release: the installed program says {found}, expected shoal {said}")
        run(python.with_name("shoal"), "datasets", "--write", ".", cwd=folder)  # the tables that README reads
        examples = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        for code, output in examples:
            if (printed := run(python, "-c", code, cwd=folder)) != output:
                sys.exit(f"release: README's Python prints\n{printed}expected\n{output}")
        if not examples:
            sys.exit("release: README.md has no Python with what it prints")


def main() -> None:
    """Check, build, install, try, tag."""
    if changed := run("git", "status", "--porcelain").strip():
        sys.exit(f"release: commit or remove these files first:\n{changed}")
    said, day = version()
    is_tagged = "--tag" in sys.argv[1:]
    if is_tagged and day != f"{date.today()}":
        sys.exit(f"release: {', '.join(PLACES)} say {day}; a tag of today needs {date.today()} there")
    shutil.rmtree(DIST, ignore_errors=True)
    with TemporaryDirectory() as scratch:
        sdist, wheel, _ = build(DIST, Path(scratch))
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    print(f"release: {wheel.name} and its sdist are built, and twine finds no fault", flush=True)
    try_readme(wheel, said)
    print("release: a fresh environment has it, and README's lines print there what README says", flush=True)
    if is_tagged:
        run("git", "tag", "-a", f"v{said}", "-m", f"shoal {said}")
        print(f"release: v{said} is tagged in this clone; push the tag and upload dist/")


if __name__ == "__main__":
    main()
