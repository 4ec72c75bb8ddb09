"""`shoal completion` prints what a shell completes by."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.cli.conftest import Program

ASKED = """
source /dev/stdin
COMP_WORDS=(shoal {words}) COMP_CWORD={last}
_shoal
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to ask")
@pytest.mark.parametrize(("typed", "completed"), [("pred", "predict"), ("run --predic", "--predictions")])
def test_bash_completes_commands_and_options(shoal: Program, typed: str, completed: str) -> None:
    code, script, err = shoal("completion", "bash")
    assert (code, err) == (0, "")
    command = ASKED.format(words=typed, last=len(typed.split()))
    found = subprocess.run(["bash", "-c", command], input=script, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [completed]


def test_an_unknown_shell_is_refused(shoal: Program) -> None:
    code, _, err = shoal("completion", "cmd")
    assert code == 2
    assert "bash" in err
