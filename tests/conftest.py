"""For all tests: fresh compiled code, and how hard Hypothesis searches."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable

import pytest
from benchmarks.guard.processor import SOURCE, compile_for_haswell, remove_stale_code
from hypothesis import HealthCheck, settings

if "MATRIX" not in os.environ:  # `make matrix` compiles as users do, and so in all processes of a test alike
    compile_for_haswell()

collect_ignore = ["serve/warm.py"]  # it learns when it is imported: to look for examples, all workers would compile
# A worker a core: threads of the linear algebra library on top would wait for each other, up to 60 times as long.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# The first example compiles numba code, so neither deadlines nor "too slow" say anything here.
settings.register_profile(
    "local", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.register_profile("search", settings.get_profile("local"), max_examples=300)
settings.load_profile("search" if "SEARCH" in os.environ else "ci" if os.environ.get("CI") else "local")


@pytest.fixture
def shoal(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str | int | None, str, str]]:
    """The program as a function: arguments in; exit code, stdout and stderr out."""
    from shoal.cli.app import start

    def run(*arguments: object) -> tuple[str | int | None, str, str]:
        try:
            start([str(argument) for argument in arguments])
            code: str | int | None = 0
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


def pytest_configure(config: pytest.Config) -> None:
    """Under xdist only the controller removes what is stale, before the workers start."""
    if not hasattr(config, "workerinput"):
        remove_stale_code()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage rarely, and not among the tests: numba's compiler makes many objects, a twelfth of its time.

    And say so if workers ignore the groups below, as xdist 3.8 does with pytest 9.2: the tests would take far longer.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    marked = any(item.get_closest_marker("xdist_group") for item in session.items)
    if getattr(session.config.option, "loadgroup", False) and marked:
        assert any("@" in item.nodeid for item in session.items), "pytest and pytest-xdist: groups of tests are lost"


# Public learner, in small letters -> its module: learners of one module have the same loops.
LEARNERS = {
    name.lower(): module
    for module, name in re.findall(
        r"from \.((?:online|batch)\.\S+) import (\w+)", (SOURCE / "__init__.pyi").read_text(encoding="utf-8")
    )
}


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of a learner go to one worker (`--dist loadgroup`), those of files too: two would compile twice.

    Groups come first, the largest before the others. Of the other tests the guard's is the first: it counts what the
    groups compiled, and takes the longest. The papers' experiments are a group of their own, which prepares their data
    sets once: each runs several learners, which the larger groups have compiled by then. Tests of a file that share a
    fixture, such as a service or a browser, go to one worker, which makes it once; those of the report share several.
    """
    items.sort(key=lambda item: "/benchmarks/" not in item.nodeid)
    for item in items:
        if "/papers/" in item.nodeid:
            if "test_experiments" in item.nodeid:
                item.add_marker(pytest.mark.xdist_group("papers"))
            continue
        path, _, name = item.nodeid.lower().replace("_", "").replace("-", "").partition("::")
        # A file's learner, which its loops are of, or else what stands last in the test's name, in brackets: others are
        # put around it. Of names that end alike, the longer.
        texts = [text for text in (path, name) if any(learner in text for learner in LEARNERS)]
        if texts:
            found = [(texts[0].rfind(one) + len(one), len(one), one) for one in LEARNERS if one in texts[0]]
            item.add_marker(pytest.mark.xdist_group(LEARNERS[max(found)[2]]))
        elif "/files/" in path:
            item.add_marker(pytest.mark.xdist_group("files"))
        elif "/report/" in path:
            item.add_marker(pytest.mark.xdist_group("report"))
        elif isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None:
            fixtures = [one for several in item._fixtureinfo.name2fixturedefs.values() for one in several]
            if any(fixture.scope == "module" for fixture in fixtures):
                item.add_marker(pytest.mark.xdist_group(path))
