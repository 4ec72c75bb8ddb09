from .learner import Learner as Learner
from .learner import load as load
from .online.multitask_perceptron import MultitaskPerceptron as MultitaskPerceptron
from .online.multitask_perceptron import MultitaskRegressor as MultitaskRegressor
from .rounds import Chunk as Chunk
from .rounds import Rounds as Rounds

__all__ = ["Chunk", "Learner", "MultitaskPerceptron", "MultitaskRegressor", "Rounds", "load"]
