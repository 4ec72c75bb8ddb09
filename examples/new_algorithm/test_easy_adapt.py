"""EasyAdapt is its twin, in every protocol."""

import pytest
from tests.streams import assert_close, draw, own_parameters
from tests.twins import easy_adapt as twin

from shoal import EasyAdapt


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
def test_equals_twin(protocol: str, sparse: bool) -> None:
    stream = draw(1, protocol=protocol, density=0.7)
    learner = EasyAdapt(eta=0.3)
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, W = twin.learn(stream.X, stream.y, stream.task, stream.rows_of_rounds, **own_parameters(learner))
    assert_close(decisions, expected)
    assert_close(learner.coef_, W)
    assert learner.n_updates_ > 0
