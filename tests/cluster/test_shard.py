"""A shard does each command once and in order, and answers for no other moment than it is asked about."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shoal import PassiveAggressive
from shoal.cluster.shard import OutOfStep, Progress, Shard
from shoal.model.model import Model
from shoal.model.table import read_table


def test_a_shard_that_was_started_again_does_and_answers_nothing_out_of_step() -> None:
    learner = PassiveAggressive()
    front = Model(learner.new_core(), learner.targets, "front")
    X = np.eye(3)
    admitted = front.admit(read_table(X), [1, -1, 1], ["ann", "bob", "ann"], None, None)
    commands = [("begin", (admitted.features, admitted.labels)), ("learn", (admitted, False))]
    shard = Shard()
    for number in 1, 2:
        with pytest.raises(OutOfStep):
            shard.run(number, *commands[0])
        with pytest.raises(OutOfStep):
            shard.answer(number, "saved", ())
    shard.restore(Progress(0, learner, None))
    shard.run(1, *commands[0])
    checkpoint = pickle.dumps(shard.answer(1, "progress", ()))
    with pytest.raises(OutOfStep):
        shard.run(1, *commands[0])
    with pytest.raises(OutOfStep):
        shard.answer(0, "saved", ())
    shard.run(2, *commands[1])
    saved = shard.answer(2, "saved", ())
    assert shard.answer(2, "updates", ()).tolist() == [2, 1]
    again = Shard()
    again.restore(pickle.loads(checkpoint))  # as Ray hands it over
    with pytest.raises(OutOfStep):
        again.answer(2, "saved", ())
    again.run(2, *commands[1])
    assert again.answer(2, "saved", ()) == saved
