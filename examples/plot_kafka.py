"""
A topic of Kafka, each message learned once
===========================================

``shoal follow`` learns the messages of a topic and answers over HTTP meanwhile. It is killed here in the middle; the
same command goes on behind the last message that was learned, because offsets and rows stand in one commit.
"""

# %%
# Brokers: those of librdkafka's mock cluster, in this process, so that the build needs none. They stand in for yours,
# ``broker:9092``. ``tests/serve/mock_kafka.py`` of the repository starts them.

import atexit
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import matplotlib.pyplot as plt
import polars as pl

import shoal
from shoal.datasets.samples import write_samples
from shoal.serve import Client

sys.path.append(str(Path(shoal.__file__).parents[2]))  # the repository, for its stand-in of brokers
from tests.serve.mock_kafka import mock_brokers

cluster = mock_brokers()
brokers = cluster.__enter__()
brokers.create("mails")
folder = tempfile.TemporaryDirectory()
mails = pl.read_csv(write_samples(folder.name)[0]).to_dicts()
messages = [(mail["user"], json.dumps(mail).encode()) for mail in mails]  # of one user, one partition
brokers.send("mails", messages[:1500])

# %%
# The command, as a supervisor gives it again and again:

with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{one.getsockname()[1]}"
topic = f"kafka://{brokers.address}/mails"
words = ["follow", topic, "--task", "user", "--label", "spam", "--id", "id", "--port", url.rpartition(":")[2]]
print("shoal", *words[:1], "kafka://broker:9092/mails", *words[2:8])


def start() -> subprocess.Popen:
    """The service, in a folder of its own."""
    process = subprocess.Popen([sys.executable, "-m", "shoal", *words], cwd=folder.name, stderr=subprocess.DEVNULL)
    atexit.register(process.kill)  # if something below fails
    return process


def learned(wanted: int) -> int:
    """Wait until the service has learned so many rows, or more."""
    while True:
        assert process.poll() is None
        try:
            with Client(url, retries=0) as client:
                if (rows := client.model()["rows"]) >= wanted:
                    return rows
        except httpx.TransportError:
            pass
        time.sleep(0.1)


process = start()
print("learned:", learned(500), "and the first 1,000, which made the model")

# %%
# Killed while more messages come, and started again:

brokers.send("mails", messages[1500:1800])
process.kill()
process.wait()
brokers.send("mails", messages[1800:])
process = start()
print("learned after the kill:", learned(1000), "of 1,000")

with Client(url) as client:
    said = client.predict_one({"user": "anna", "subject": "Discount credit", "hour": 9})
    print(f"anna, Discount credit: spam with probability {said.probability:.2f}")
    inboxes = client.tasks("error")["tasks"]
    print(f"worst inbox: {inboxes[0]['task']}, error {inboxes[0]['error']:.2f} of {inboxes[0]['rows']} mails")
process.terminate()
print("exit code", process.wait(60))
cluster.__exit__(None, None, None)
folder.cleanup()

figure, ax = plt.subplots(figsize=(7, 2.6))
ax.barh([f"{one['task']}, {one['rows']} mails" for one in inboxes], [one["error"] for one in inboxes])
ax.set(xlabel="error of the mails that were learned, each forecast before")
figure.tight_layout()

# %%
# Labels of a topic of their own, certificates and messages that cannot be read: :doc:`/service`.
