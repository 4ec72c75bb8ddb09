from .conjoint import make_conjoint as make_conjoint
from .dataset import Dataset as Dataset
from .ecml_spam import load_ecml_spam as load_ecml_spam
from .enron import load_enron as load_enron
from .flights import load_flights as load_flights
from .jester import load_jester as load_jester
from .landmine import load_landmine as load_landmine
from .mhc import load_mhc as load_mhc
from .rcv1 import load_rcv1 as load_rcv1
from .registry import load as load
from .registry import names as names
from .related_tasks import make_related_tasks as make_related_tasks
from .school import load_school as load_school
from .sentiment import load_sentiment as load_sentiment

__all__ = [
    "Dataset",
    "load",
    "load_ecml_spam",
    "load_enron",
    "load_flights",
    "load_jester",
    "load_landmine",
    "load_mhc",
    "load_rcv1",
    "load_school",
    "load_sentiment",
    "make_conjoint",
    "make_related_tasks",
    "names",
]
