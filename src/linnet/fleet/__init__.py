"""The fleet: servers that are taken away, how long they live, and how to compute on them nevertheless.

Hours and dollars throughout.

    observations ─▶ laws, fitting, comparison ─▶ model ─▶ checkpoints
    reading ─▶ lifetimes ─┘       pooling, correlation, drift ─┘
    deadlines: a job on spot and on-demand servers, along a trace
"""

from linnet.fleet.checkpoints import CheckpointPlan
from linnet.fleet.comparison import Candidate, Comparison
from linnet.fleet.deadlines import DeadlineRun, Situation, simulate_deadline
from linnet.fleet.drift import Drift
from linnet.fleet.empirical import KaplanMeier
from linnet.fleet.lifetimes import Lifetimes
from linnet.fleet.model import FittedModel, Model
from linnet.fleet.pooling import Pooled

__all__ = [
    "Candidate",
    "CheckpointPlan",
    "Comparison",
    "DeadlineRun",
    "Drift",
    "FittedModel",
    "KaplanMeier",
    "Lifetimes",
    "Model",
    "Pooled",
    "Situation",
    "simulate_deadline",
]
