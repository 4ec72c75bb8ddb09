from .batch.independent_tasks import IndependentTasks as IndependentTasks
from .batch.mtfl import MTFL as MTFL
from .batch.pooled_tasks import PooledTasks as PooledTasks
from .batch.reg_mtl import RegMTL as RegMTL
from .batch.reg_mtl import RegMTLRegressor as RegMTLRegressor
from .batch.shamo import SHAMO as SHAMO
from .batch.smtl import SMTL as SMTL
from .batch.smtl import SMTLRegressor as SMTLRegressor
from .batch.sparse_mtl.learner import SparseMTL as SparseMTL
from .batch.sparse_mtl.learner import SparseMTLRegressor as SparseMTLRegressor
from .batch.trace_norm import TraceNorm as TraceNorm
from .engine.rounds import Chunk as Chunk
from .evaluation.periodic import Periodic as Periodic
from .learner import Learner as Learner
from .online.collaborative.collaborative_cw import CollaborativeCW as CollaborativeCW
from .online.collaborative.collaborative_pa import CollaborativePA as CollaborativePA
from .online.hedged_sharing.learner import HedgedSharing as HedgedSharing
from .online.hedged_sharing.learner import HedgedSharingRegressor as HedgedSharingRegressor
from .online.kernel_perceptron import KernelPerceptron as KernelPerceptron
from .online.local_global_gaussian.learner import LocalGlobalGaussian as LocalGlobalGaussian
from .online.mixed_effects.learner import MixedEffects as MixedEffects
from .online.mixed_effects.learner import MixedEffectsRegressor as MixedEffectsRegressor
from .online.multitask_perceptron import MultitaskPerceptron as MultitaskPerceptron
from .online.multitask_perceptron import MultitaskRegressor as MultitaskRegressor
from .online.omtrl import OMTRL as OMTRL
from .online.osmtl import OSMTL as OSMTL
from .online.osmtl import OSMTLRegressor as OSMTLRegressor
from .online.p_norm_perceptron import PNormPerceptron as PNormPerceptron
from .online.passive_aggressive import PassiveAggressive as PassiveAggressive
from .online.passive_aggressive import PassiveAggressiveRegressor as PassiveAggressiveRegressor
from .online.romco import ROMCO as ROMCO
from .online.schatten_perceptron import SchattenPerceptron as SchattenPerceptron
from .online.second_order_perceptron.learner import SecondOrderPerceptron as SecondOrderPerceptron
from .online.shared_loss import SharedLoss as SharedLoss
from .online.task_levels.learner import TaskLevels as TaskLevels
from .online.task_levels.learner import TaskLevelsRegressor as TaskLevelsRegressor
from .tabular.estimators import TabularClassifier as TabularClassifier
from .tabular.estimators import TabularRegressor as TabularRegressor
from .tabular.loading import load as load
from .wrappers.conformal import Conformal as Conformal
from .wrappers.guarded import Guarded as Guarded
from .wrappers.hierarchy import Hierarchy as Hierarchy
from .wrappers.label_query import LabelQuery as LabelQuery
from .wrappers.multi_class import MultiClass as MultiClass
from .wrappers.outside_forecast import OutsideForecast as OutsideForecast
from .wrappers.task_column import TaskColumn as TaskColumn

__all__ = [
    "MTFL",
    "OMTRL",
    "OSMTL",
    "ROMCO",
    "SHAMO",
    "SMTL",
    "Chunk",
    "CollaborativeCW",
    "CollaborativePA",
    "Conformal",
    "Guarded",
    "HedgedSharing",
    "HedgedSharingRegressor",
    "Hierarchy",
    "IndependentTasks",
    "KernelPerceptron",
    "LabelQuery",
    "Learner",
    "LocalGlobalGaussian",
    "MixedEffects",
    "MixedEffectsRegressor",
    "MultiClass",
    "MultitaskPerceptron",
    "MultitaskRegressor",
    "OSMTLRegressor",
    "OutsideForecast",
    "PNormPerceptron",
    "PassiveAggressive",
    "PassiveAggressiveRegressor",
    "Periodic",
    "PooledTasks",
    "RegMTL",
    "RegMTLRegressor",
    "SMTLRegressor",
    "SchattenPerceptron",
    "SecondOrderPerceptron",
    "SharedLoss",
    "SparseMTL",
    "SparseMTLRegressor",
    "TabularClassifier",
    "TabularRegressor",
    "TaskColumn",
    "TaskLevels",
    "TaskLevelsRegressor",
    "TraceNorm",
    "load",
]
