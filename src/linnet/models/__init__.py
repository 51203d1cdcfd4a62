"""Models: generalised linear models, and what is built on the factorisations.

Estimators follow scikit-learn (`fit`, `predict`, `score`, parameters, attributes), which gives base classes
and checks and nothing else: every solver is ours, and runs on any engine. Needs the extra
`linnet-array[models]`.
"""

from __future__ import annotations

from linnet.errors import MissingExtraError

try:
    import sklearn as _sklearn
except ImportError as error:  # pragma: no cover - tests have it
    raise MissingExtraError(
        "linnet.models needs scikit-learn for its base classes; install it with: pip install "
        "'linnet-array[models]'"
    ) from error

from linnet.models.clusters import KMeans
from linnet.models.decompositions import PCA, TruncatedSVD
from linnet.models.elastic import ElasticNet, ElasticNetCV, Lasso, enet_path, lasso_path
from linnet.models.factors import CP, MatrixFactorization
from linnet.models.gaussian import GaussianProcessRegressor, KernelRidge
from linnet.models.generalised import (
    GammaRegressor,
    GeneralizedLinearModel,
    PoissonRegressor,
    TweedieRegressor,
)
from linnet.models.linear import LinearRegression, Ridge
from linnet.models.logistic import LogisticRegression
from linnet.models.negative_binomial import NegativeBinomialRegressor
from linnet.models.networks import MLPClassifier, MLPRegressor
from linnet.models.nonnegative import NMF
from linnet.models.pagerank import PageRank
from linnet.models.statistics import Statistics

__all__ = [
    "CP",
    "NMF",
    "PCA",
    "ElasticNet",
    "ElasticNetCV",
    "GammaRegressor",
    "GaussianProcessRegressor",
    "GeneralizedLinearModel",
    "KMeans",
    "KernelRidge",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "MLPClassifier",
    "MLPRegressor",
    "MatrixFactorization",
    "NegativeBinomialRegressor",
    "PageRank",
    "PoissonRegressor",
    "Ridge",
    "Statistics",
    "TruncatedSVD",
    "TweedieRegressor",
    "enet_path",
    "lasso_path",
]

del _sklearn
