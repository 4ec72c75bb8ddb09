from .bayes import bayes_regret_bound as bayes_regret_bound
from .fixed_share import fixed_share_regret_bound as fixed_share_regret_bound
from .gradient_steps import gradient_regret_bound as gradient_regret_bound
from .graph import graph_rate_bound as graph_rate_bound
from .kernel_perceptron import kernel_mistake_bound as kernel_mistake_bound
from .local_global_gaussian import gaussian_regret_bound as gaussian_regret_bound
from .osmtl import osmtl_regret_bound as osmtl_regret_bound
from .p_norm import p_norm_mistake_bound as p_norm_mistake_bound
from .perceptron import optimal_sharing as optimal_sharing
from .perceptron import perceptron_mistake_bound as perceptron_mistake_bound
from .perceptron import task_complexity as task_complexity
from .romco import romco_regret_bound as romco_regret_bound
from .schatten import schatten_loss_bound as schatten_loss_bound
from .schatten import schatten_mistake_bound as schatten_mistake_bound
from .second_order import second_order_mistake_bound as second_order_mistake_bound
from .shared_loss import shared_loss_bound as shared_loss_bound

__all__ = [
    "bayes_regret_bound",
    "fixed_share_regret_bound",
    "gaussian_regret_bound",
    "gradient_regret_bound",
    "graph_rate_bound",
    "kernel_mistake_bound",
    "optimal_sharing",
    "osmtl_regret_bound",
    "p_norm_mistake_bound",
    "perceptron_mistake_bound",
    "romco_regret_bound",
    "schatten_loss_bound",
    "schatten_mistake_bound",
    "second_order_mistake_bound",
    "shared_loss_bound",
    "task_complexity",
]
