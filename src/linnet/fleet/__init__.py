"""The fleet: servers that are taken away, how long they live, and how to compute on them nevertheless.

Hours and dollars throughout.

    observations ─▶ laws, fitting, comparison ─▶ model ─▶ checkpoints
    reading ─▶ lifetimes ─┘       pooling, correlation, drift ─┘
"""

from linnet.fleet.checkpoints import CheckpointPlan
from linnet.fleet.comparison import Candidate, Comparison
from linnet.fleet.drift import Drift
from linnet.fleet.empirical import KaplanMeier
from linnet.fleet.lifetimes import Lifetimes
from linnet.fleet.model import FittedModel, Model
from linnet.fleet.pooling import Pooled

__all__ = [
    "Candidate",
    "CheckpointPlan",
    "Comparison",
    "Drift",
    "FittedModel",
    "KaplanMeier",
    "Lifetimes",
    "Model",
    "Pooled",
]
