from .learner import Learner as Learner
from .learner import load as load
from .online.multitask_perceptron import MultitaskPerceptron as MultitaskPerceptron
from .online.multitask_perceptron import MultitaskRegressor as MultitaskRegressor
from .online.osmtl import OSMTL as OSMTL
from .online.passive_aggressive import PassiveAggressive as PassiveAggressive
from .online.passive_aggressive import PassiveAggressiveRegressor as PassiveAggressiveRegressor
from .rounds import Chunk as Chunk
from .rounds import Rounds as Rounds

__all__ = [
    "OSMTL",
    "Chunk",
    "Learner",
    "MultitaskPerceptron",
    "MultitaskRegressor",
    "PassiveAggressive",
    "PassiveAggressiveRegressor",
    "Rounds",
    "load",
]
