"""The steps of deploy/Dockerfile without a daemon of containers: what it would run is run here, and its image tried.

Each absolute path of the Dockerfile is one below a temporary folder; `RUN` and `COPY` are done in their order, so the
wheel is installed as in the image. Then the entry point serves a model as the image's user, from a read-only /opt and
without a home, until the health check says yes and a row is answered. Dependencies come from the index of pip.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = "/opt", "/wheels", "/data"
TOKENS = {f"SHOAL_TOKEN_{scope}": f"{scope.lower()}-{'0' * 16}" for scope in ("READ", "WRITE", "ADMIN")}
MAILS = "user,size,spam\n" + "".join(f"u{i % 3},{i % 7},{int(i % 7 > 3)}\n" for i in range(300))
PATIENCE = 120.0  # seconds until it answers


def steps(text: str) -> list[tuple[str, str]]:
    """Instructions and what stands behind them, in their order."""
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "").splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines) if name]


def below(folder: Path, text: str) -> str:
    """A text whose absolute paths are below a folder."""
    return re.sub(rf"(?<![\w.])({'|'.join(FOLDERS)})(?=[/\s:\"]|$)", lambda found: f"{folder}{found[1]}", text)


def built(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Do the steps; gives the last of each instruction, and the environment of the last stage."""
    last, environment = dict[str, str](), dict[str, str]()
    for name, rest in steps((ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")):
        last[name] = rest
        if name == "FROM":
            environment = {}
        elif name == "ENV":
            environment |= dict(re.findall(r"(\w+)=(\S+)", below(folder, rest)))
        elif name == "COPY" and "--from" not in rest:
            (folder / "wheels").mkdir()
            for wheel in (folder / "dist").glob("*.whl"):
                shutil.copy(wheel, folder / "wheels")
        elif name == "RUN":
            command = below(folder, rest).replace("python -m venv", f"{sys.executable} -m venv")
            print(f"RUN {command}", flush=True)
            subprocess.run(["sh", "-ec", command], env={**os.environ, **expanded(environment)}, check=True)
    return last, expanded(environment)


def expanded(environment: dict[str, str]) -> dict[str, str]:
    """An environment whose `$PATH` is this one."""
    return {name: value.replace("$PATH", os.environ["PATH"]) for name, value in environment.items()}


def tried(folder: Path, last: dict[str, str], environment: dict[str, str]) -> None:
    """Serve as the image does, ask, and end it."""
    user = last["USER"].partition(":")[0]
    (folder / "mails.csv").write_text(MAILS, encoding="utf-8")
    model, program = folder / "data/model.shoal", str(folder / "opt/shoal/bin/shoal")
    options = ["--task", "user", "--label", "spam", "--quiet", "--save", str(model)]
    learn = [program, "run", "mails.csv", *options]
    subprocess.run(learn, cwd=folder, env={**os.environ, **environment}, check=True)
    shutil.chown(model, int(user), int(user))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    entry = [below(folder, word).replace("8000", port) for word in json.loads(last["ENTRYPOINT"])]
    health = json.loads(last["HEALTHCHECK"].partition(" CMD ")[2].replace("8000", port))
    inside = {**environment, **TOKENS, "HOME": "/proc/nowhere"}
    mounts = f"mount --bind {folder}/opt {folder}/opt && mount -o remount,ro,bind {folder}/opt"
    as_user = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
    tries = [*as_user, "sh", "-c", 'exec "$0" -c ""', sys.executable]  # the shell has lost what root may
    if subprocess.run(tries, stderr=subprocess.DEVNULL).returncode:
        print(f"not as user {user}, who may not read {sys.base_prefix}; a Python of the system would do")
        as_user = []
    run = ["unshare", "-m", "sh", "-ec", f'{mounts} && exec "$@"', "sh", *as_user, *entry]
    process = subprocess.Popen(run, env=inside, cwd="/", stderr=subprocess.PIPE, text=True)
    try:
        ends = time.monotonic() + PATIENCE
        while subprocess.run(health, env=inside, stderr=subprocess.DEVNULL).returncode:
            assert process.poll() is None, "the service has ended"
            assert time.monotonic() < ends, "the service does not answer"
            time.sleep(0.5)
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/predict", b'{"user": "u1", "size": 6}',
            {"content-type": "application/json", "authorization": f"Bearer {TOKENS['SHOAL_TOKEN_READ']}"},
        )  # fmt: skip
        answer = json.load(urllib.request.urlopen(asked))
        assert answer["predicted"] == 1, answer
        assert answer["id"], answer
    finally:
        process.send_signal(getattr(signal, last["STOPSIGNAL"]))
        said = process.communicate(timeout=PATIENCE)[1]
        print(said)
    assert process.returncode == 0, process.returncode
    assert "compiling" not in said, "the image compiles at its start"
    print("the image starts from a read-only /opt and without a home, answers, and ends with 0")


def main() -> None:
    """Build and try."""
    with TemporaryDirectory() as found:
        folder = Path(found)
        folder.chmod(0o755)
        for path in FOLDERS[:1]:
            (folder / path[1:]).mkdir()
        wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
        subprocess.run(wheel, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        tried(folder, *built(folder))


if __name__ == "__main__":
    main()
