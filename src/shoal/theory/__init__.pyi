from .osmtl import osmtl_regret_bound as osmtl_regret_bound
from .perceptron import optimal_sharing as optimal_sharing
from .perceptron import perceptron_mistake_bound as perceptron_mistake_bound
from .perceptron import task_complexity as task_complexity

__all__ = ["optimal_sharing", "osmtl_regret_bound", "perceptron_mistake_bound", "task_complexity"]
