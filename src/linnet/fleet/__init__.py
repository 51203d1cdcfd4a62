"""The fleet: servers that are taken away, how long they live, and how to compute on them nevertheless.

Hours and dollars throughout.

    observations ─▶ laws, fitting, comparison ─▶ model ─▶ checkpoints
    reading ─▶ lifetimes ─┘       pooling, correlation, drift ─┘
    deadlines: a job on spot and on-demand servers, along a trace

    specification, rules ─▶ bag ─▶ controller ─▶ providers (servers) and the agent on each server (jobs)
                             │         └─ storage: SQLite in the bag's folder
                             └─▶ planning ─▶ simulation (virtual time)
    records ─▶ state ─▶ deciding ◀─ policies: the same for controller and simulation
"""

from linnet.fleet.bag import Bag
from linnet.fleet.checkpoints import CheckpointPlan
from linnet.fleet.comparison import Candidate, Comparison
from linnet.fleet.deadlines import DeadlineRun, Situation, simulate_deadline
from linnet.fleet.drift import Drift
from linnet.fleet.empirical import KaplanMeier
from linnet.fleet.fleet import Fleet
from linnet.fleet.lifetimes import Lifetimes
from linnet.fleet.model import FittedModel, Model
from linnet.fleet.offers import Offer
from linnet.fleet.planning import Plan, Spread
from linnet.fleet.policies import median_stopping
from linnet.fleet.pooling import Pooled
from linnet.fleet.prices import Catalogue, Price
from linnet.fleet.providers import EC2, Local, Provider, Simulated, Slurm
from linnet.fleet.saving import Checkpoint, Saver
from linnet.fleet.specification import span
from linnet.fleet.status import Status
from linnet.fleet.table import Table
from linnet.fleet.trials import Trials

__all__ = [
    "EC2",
    "Bag",
    "Candidate",
    "Catalogue",
    "Checkpoint",
    "CheckpointPlan",
    "Comparison",
    "DeadlineRun",
    "Drift",
    "FittedModel",
    "Fleet",
    "KaplanMeier",
    "Lifetimes",
    "Local",
    "Model",
    "Offer",
    "Plan",
    "Pooled",
    "Price",
    "Provider",
    "Saver",
    "Simulated",
    "Situation",
    "Slurm",
    "Spread",
    "Status",
    "Table",
    "Trials",
    "median_stopping",
    "simulate_deadline",
    "span",
]
