"""
The service: late labels, a swap, a roll-back
=============================================

A model answers over HTTP while it learns. Labels come hours after the answers; meanwhile somebody trains another model,
lets it take the place of the first one, and takes it back. No request is refused on the way.
"""

# %%
# Mails of six users, made up, and two models of the first 1,000: a good one, and one of a table whose subjects somebody
# joined to the wrong mails.

import atexit
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time

import httpx
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from shoal import TabularClassifier
from shoal.datasets.samples import write_samples
from shoal.serve import Client

folder = tempfile.TemporaryDirectory()
mails = pl.read_csv(write_samples(folder.name)[0]).drop("id")
first, rest = mails[:1000], mails[1000:].to_dicts()
for name, table in {"model": first, "mistake": first.with_columns(pl.col("subject").shuffle(seed=0))}.items():
    TabularClassifier(task="user", label="spam").fit(table.drop("spam"), table["spam"]).save(
        f"{folder.name}/{name}.shoal"
    )

# %%
# ``shoal serve`` as a process of its own, at a port that is free, with a token. A client that has it may do all.

with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{one.getsockname()[1]}"
token = secrets.token_urlsafe(24)
command = [sys.executable, "-m", "shoal", "serve", f"{folder.name}/model.shoal", "--port", url.rpartition(":")[2]]
service = subprocess.Popen(
    command, env={**os.environ, "SHOAL_TOKEN_ADMIN": token}, stderr=subprocess.PIPE, encoding="utf-8"
)
atexit.register(service.kill)  # if something below fails


def is_ready() -> bool:
    """Whether the service answers."""
    try:
        return httpx.get(f"{url}/ready").is_success
    except httpx.TransportError:
        return False


while not is_ready():
    assert service.poll() is None, service.stderr.read()
    time.sleep(0.1)
client = Client(url, token)
print("without the token:", httpx.get(f"{url}/v1/model").status_code)
print("with it:", client.model()["learner"], "with", client.model()["tasks"], "tasks")

# %%
# Each mail is answered when it comes. Its answer has an id; the label, when somebody knows it, needs that id alone.

waiting, wrong = {}, []


def answer(mails: list[dict]) -> None:
    """Ask for each mail; what is true is known later."""
    for mail in mails:
        said = client.predict_one({name: value for name, value in mail.items() if name != "spam"})
        waiting[said.id] = mail["spam"]
        wrong.append(said.predicted != mail["spam"])


def label() -> None:
    """All labels that are out, in one request."""
    receipt = client.label(waiting)
    print(f"{receipt.accepted} labels learned; late {receipt.late}, double {receipt.double}, unknown {receipt.unknown}")
    waiting.clear()


answer(rest[:300])
one_of_them = next(iter(waiting.items()))
label()
print("the same label again:", len(client.label([one_of_them]).double), "double, learned once")

# %%
# The other model takes the place of the first one. It errs on every third mail; the first one comes back as it was.

client.swap(f"{folder.name}/mistake.shoal")
answer(rest[300:500])
print(f"error of the 200 answers after the swap: {np.mean(wrong[300:]):.2f}")
waiting.clear()  # what nobody labels within a week is forgotten
client.rollback()
answer(rest[500:])
label()
print(f"error of the 500 answers after the roll-back: {np.mean(wrong[500:]):.2f}")

# %%
# At SIGTERM the service answers what is on its way, learns what was accepted, takes a snapshot, and ends with 0.

client.close()
service.terminate()
service.communicate(timeout=60)
print("exit code", service.returncode)
folder.cleanup()

figure, ax = plt.subplots(figsize=(7, 3))
ax.plot(np.convolve(wrong, np.ones(50) / 50, "valid"), color="tab:blue")
for row, said in ((300, "swap"), (500, "roll-back")):
    ax.axvline(row, color="gray", linestyle=":")
    ax.annotate(said, (row + 5, 0.9))
ax.set(xlabel="answers", ylabel="error of the last 50", ylim=(0, 1))
figure.tight_layout()

# %%
# The same in a shell, behind a proxy, in a container: :doc:`/service`, :doc:`/service-operations`, :doc:`/deploy`.
