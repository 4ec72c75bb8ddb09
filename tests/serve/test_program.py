"""The program: serve, send, log, replay; SIGTERM ends a service with 0 and nothing lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest
from tests.serve.material import assert_same, records, rows, wait_for, write_model
from tests.serve.postgres import server
from tests.serve.test_http import served

from shoal import PassiveAggressive
from shoal.cli.app import start
from shoal.cli.commands.serve import open_lock, with_file
from shoal.serve.client import Client, ServiceError
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.limits import Caps
from shoal.serve.log import Log

READ, WRITE, ADMIN = "r" * 16, "w" * 16, "a" * 16


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_service_from_start_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, port = write_model(tmp_path), free_port()
    table, url = tmp_path / "more.csv", f"http://127.0.0.1:{port}"
    mails = rows(records(5_000, seed=40, late_columns=False)).frame
    mails.write_csv(table)
    secrets = {"SHOAL_TOKEN_READ": READ, "SHOAL_TOKEN_WRITE": WRITE, "SHOAL_TOKEN_ADMIN": ADMIN}
    options = ["--port", str(port), "--keep-log", "--snapshot-rows", "2000", "--snapshot-seconds", "5", "--keep", "2"]
    options += ["--label-wait", "1", "--new-tasks", "50", "--new-columns", "3", "--max-tasks", "100"]
    command = [sys.executable, "-m", "shoal", "serve", str(model), *options]
    process = subprocess.Popen(command, env={**os.environ, **secrets}, stderr=subprocess.PIPE, text=True)
    wait_for(url)
    with Client(url, ADMIN) as client:
        monkeypatch.setenv("SHOAL_TOKEN_WRITE", WRITE)
        for _ in range(2):
            start(["send", str(table), "--to", url])
        told = capsys.readouterr().err
        assert "5,000 rows are in the log" in told
        assert "5,000 had been sent before" in told
        with Client(url, READ) as reader, pytest.raises(ServiceError, match="scope"):
            reader.learn(mails[:1])
        answer = client.predict_one({"user": "u1", "size": 1})
        assert client.label({str(answer.id): "no"}).accepted == 1
        process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert f"http://127.0.0.1:{port}" in process.stderr.read()
    process.stderr.close()
    folder = Path(f"{model}.live")
    assert (folder / "snapshots" / f"{4:016}.shoal").exists()

    start(["log", str(folder), "--after", "2", "--records", "9", "--rows"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if " row" in line[:60]] == ["3", "4"]
    assert len(lines) == 2 + 1_000 + 1
    then = tmp_path / "then.shoal"
    start(["replay", str(folder), "--until", "2", "--save", str(then)])
    with Engine(model, tmp_path / "other", EngineSettings()) as other:
        for i in (0, 2_000):
            other.learn(rows(mails[i : i + 2_000].to_dicts())).result()
        assert other.wait_until_learned(timeout=30)
        assert_same(then, other.export())
    start(["replay", str(folder), "--save", str(then)])
    assert_same(then, folder / "snapshots" / f"{4:016}.shoal")
    for wrong, words in ((["--until", "soon"], "--until soon"), (["--until", "9"], "ends at record 4")):
        with pytest.raises(SystemExit):
            start(["replay", str(folder), *wrong, "--save", str(then)])
        assert words in capsys.readouterr().err


def test_sent_decimal_commas_are_learned_as_points(tmp_path: Path) -> None:
    """Also in columns that the model does not know; what is no number stays as it is."""
    mails = rows(records(100, seed=41)).frame.with_columns(pl.lit("s,1.5").alias("sender"))
    numbers = pl.col("size", "urgency")
    mails.with_columns(numbers.str.replace(".", ",", literal=True)).write_csv(tmp_path / "more.csv", separator=";")
    model = write_model(tmp_path)
    settings = EngineSettings(caps=Caps(new_columns_a_minute=100))
    with Engine(model, tmp_path / "sent", settings) as sent, Engine(model, tmp_path / "learned", settings) as learned:
        with served(sent, []) as url:
            start(["send", str(tmp_path / "more.csv"), "--to", url, "--decimal", ","])
        learned.learn(rows(mails.to_dicts())).result()
        assert sent.wait_until_learned(timeout=60)
        assert learned.wait_until_learned(timeout=60)
        assert sent.describe()["columns"]["urgency"] == "numeric"
        assert_same(sent.export(), learned.export())


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_second_service_is_refused_and_the_first_goes_on(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder of the first, and in its own with the log of the first: one sentence, exit code 2."""
    monkeypatch.setattr("shoal.serve.log.FIRST_PATIENCE", 0.1)
    model, port, mails = write_model(tmp_path), free_port(), rows(records(30, seed=42)).frame
    with ExitStack() as ends:
        log = f"sqlite:///{tmp_path / 'log.sqlite'}"
        if database == "postgresql":
            log = ends.enter_context(server()).url
        folder, other = tmp_path / "first", tmp_path / "second"
        options = ["serve", str(model), "--no-shadows", "--keep-log", "--log", log]
        command = [sys.executable, "-m", "shoal", *options, "--folder", str(folder), "--port", str(port)]
        process = ends.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        ends.callback(process.terminate)
        wait_for(f"http://127.0.0.1:{port}")
        client = ends.enter_context(Client(f"http://127.0.0.1:{port}"))
        client.learn(mails[:10])
        for own, words in ((folder, f"{folder} is"), (other, "the log is")):
            with pytest.raises(SystemExit) as raised:
                start([*options, "--folder", str(own), "--port", str(free_port())])
            assert raised.value.code == 2
            [line] = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
            assert line.endswith(f"{words} in use by another process")
            assert client.learn(mails[10:20]).rows == 10
            assert client.predict_one({"user": "u1", "size": 1}).known_task
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        reader = Log(log)
        assert [record.rows for record in reader.read()] == [10, 10, 10]
        reader.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "MODEL", "--host", "0.0.0.0"], "tokens are needed"),
        (["serve", "nothing.shoal"], "no model at"),
        (["serve", "MODEL", "--tokens", "nothing.json"], "cannot be read"),
        (["serve", "MODEL", "--fallback"], "for --shards"),
        (["follow", "kafka://a:9/b", "--model", "MODEL", "--labels-from", "c", "--shards", "2"], "leave out --shards"),
        (["follow", "kafka://a:9/b-{shard}", "--model", "MODEL"], "needs --model and --shards"),
        (
            ["follow", "kafka://a:9/b-{shard}", "--model", "MODEL", "--shards", "2", "--labels-from", "c"],
            "labels find their rows in the same shard",
        ),
        (["serve", "MODEL", "--log", "sqlite:////proc/nowhere/log"], "the log cannot be"),
        (["serve", "MODEL", "--log", "blub"], "is no URL; expected sqlite:///FILE or postgresql+psycopg://"),
        (["log", ".", "--log", "blub"], "is no URL"),
        (["log", ".", "--log", "sqlite:////proc/nowhere/log"], "the log cannot be"),
        (["send", "rows.vw", "--to", "http://127.0.0.1:9"], "no columns"),
        (["log", "nowhere"], "holds no log"),
    ],
)
def test_what_cannot_be_started_says_why(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.vw").write_text("1 | a\n")
    if "MODEL" in arguments:
        arguments = [str(write_model(tmp_path)) if one == "MODEL" else one for one in arguments]
    with pytest.raises(SystemExit) as raised:
        start(arguments)
    assert raised.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_a_folder_of_shards_keeps_their_number_and_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = str(write_model(tmp_path)), tmp_path / "mails.shoal.live"
    for shard in range(2):
        (folder / f"shard-{shard}").mkdir(parents=True)
    for command, words in (
        (["serve", model], "mails.shoal.live began with --shards 2 and keeps to it"),
        (["serve", model, "--shards", "2", "--shadow", model], "a service of shards keeps its model"),
        (["swap", str(folder), model], "a service of shards keeps its model"),
    ):
        with pytest.raises(SystemExit):
            start(command)
        assert words in capsys.readouterr().err
    with open_lock(folder / "shard-1"), pytest.raises(ValueError, match="live is in use"), open_lock(folder):
        pass  # nothing may move the folder of a running service


def test_another_model_file_is_named_and_read_only_when_asked_for(tmp_path: Path) -> None:
    """The folder as it was is kept; a folder that a service has is not touched."""
    model, folder = write_model(tmp_path), tmp_path / "mails.shoal.live"
    assert with_file(model, folder, replace=False) == []
    with Engine(model, folder) as engine:
        engine.learn(rows(records(10))).result()
    for replace in (False, True):
        assert with_file(model, folder, replace=replace) == []
    write_model(tmp_path, PassiveAggressive())
    assert with_file(model, folder, replace=False) == [
        f"{model} is another file than {folder} began with, and is not read; `shoal swap` puts it in place "
        "while the log goes on, --replace begins anew with it"
    ]
    with Engine(None, folder) as engine:
        assert engine.describe()["learner"] == "HedgedSharing"
        with pytest.raises(ValueError, match="in use"):
            with_file(model, folder, replace=True)
    [said] = with_file(model, folder, replace=True)
    assert said.endswith(f"what it was is kept in {folder}.1")
    assert with_file(model, folder, replace=False) == []
    with Engine(model, folder) as engine:
        assert engine.describe()["learner"] == "PassiveAggressive"
    with Engine(None, Path(f"{folder}.1")) as engine:
        assert engine.describe()["rows"] == 10
