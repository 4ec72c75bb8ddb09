"""What stands in deploy/ as far as it runs here: no daemon of containers, no cluster."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.options import ServeOptions

DEPLOY = Path(__file__).parents[2] / "deploy"
yaml = pytest.importorskip("yaml")


def options_of(command: list[str]) -> set[str]:
    """The options of a command, by the names of the fields."""
    return {word.removeprefix("--").replace("-", "_") for word in command if word.startswith("--")}


def commands() -> dict[str, list[str]]:
    """Every `shoal serve` of the files, as words."""
    docker, unit = (DEPLOY / "Dockerfile").read_text(), (DEPLOY / "shoal.service").read_text()
    entry: list[str] = re.findall(r'"([^"]+)"', docker[docker.index("ENTRYPOINT") :])
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["shoal"]
    [start] = re.findall(r"^ExecStart=\S+/(shoal .*)$", unit, re.MULTILINE)
    return {"Dockerfile": entry, "compose.yaml": [*entry, *compose["command"]], "shoal.service": shlex.split(start)}


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "shoal.service"])
def test_every_command_is_one_of_the_program(file: str) -> None:
    command = commands()[file]
    assert command[:2] == ["shoal", "serve"]
    assert options_of(command) <= {field.name for field in fields(ServeOptions)}


def test_the_dockerfile_is_well_formed() -> None:
    """`make image` does its steps."""
    if (linter := shutil.which("hadolint", path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}")) is None:
        pytest.skip("hadolint is not installed")
    found = subprocess.run([linter, str(DEPLOY / "Dockerfile")], capture_output=True, text=True)
    assert found.stdout == ""


def test_the_unit_is_one_of_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "shoal.service"
    unit.write_text((DEPLOY / "shoal.service").read_text().replace("/opt/shoal/bin/shoal", "/bin/true"))
    found = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert "shoal.service" not in found.stderr


def test_containers_are_not_root_and_write_to_their_data_alone() -> None:
    docker = (DEPLOY / "Dockerfile").read_text()
    user = int(re.findall(r"^USER (\d+)", docker, re.MULTILINE)[-1])
    stateful, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod: Any = stateful["spec"]["template"]["spec"]
    [container] = pod["containers"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["shoal"]
    assert user == pod["securityContext"]["runAsUser"] > 0
    assert container["securityContext"]["readOnlyRootFilesystem"] is compose["read_only"] is True
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/data", "/tmp"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["containerPort"] == 8000
    assert stateful["spec"]["replicas"] == 1
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": 8000}
