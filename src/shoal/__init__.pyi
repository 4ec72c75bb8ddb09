from .learner import Learner as Learner
from .learner import load as load
from .online.collaborative_cw import CollaborativeCW as CollaborativeCW
from .online.collaborative_pa import CollaborativePA as CollaborativePA
from .online.hedged_sharing import HedgedSharing as HedgedSharing
from .online.hedged_sharing import HedgedSharingRegressor as HedgedSharingRegressor
from .online.kernel_perceptron import KernelPerceptron as KernelPerceptron
from .online.label_query import LabelQuery as LabelQuery
from .online.local_global_gaussian import LocalGlobalGaussian as LocalGlobalGaussian
from .online.multi_class import MultiClass as MultiClass
from .online.multitask_perceptron import MultitaskPerceptron as MultitaskPerceptron
from .online.multitask_perceptron import MultitaskRegressor as MultitaskRegressor
from .online.omtrl import OMTRL as OMTRL
from .online.osmtl import OSMTL as OSMTL
from .online.p_norm_perceptron import PNormPerceptron as PNormPerceptron
from .online.passive_aggressive import PassiveAggressive as PassiveAggressive
from .online.passive_aggressive import PassiveAggressiveRegressor as PassiveAggressiveRegressor
from .online.romco import ROMCO as ROMCO
from .online.schatten_perceptron import SchattenPerceptron as SchattenPerceptron
from .online.second_order_perceptron import SecondOrderPerceptron as SecondOrderPerceptron
from .online.shared_loss import SharedLoss as SharedLoss
from .rounds import Chunk as Chunk
from .rounds import Rounds as Rounds

__all__ = [
    "OMTRL",
    "OSMTL",
    "ROMCO",
    "Chunk",
    "CollaborativeCW",
    "CollaborativePA",
    "HedgedSharing",
    "HedgedSharingRegressor",
    "KernelPerceptron",
    "LabelQuery",
    "Learner",
    "LocalGlobalGaussian",
    "MultiClass",
    "MultitaskPerceptron",
    "MultitaskRegressor",
    "PNormPerceptron",
    "PassiveAggressive",
    "PassiveAggressiveRegressor",
    "Rounds",
    "SchattenPerceptron",
    "SecondOrderPerceptron",
    "SharedLoss",
    "load",
]
