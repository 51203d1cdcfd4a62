"""scikit-learn's own checks of estimators, for each of ours.

Failures are allowed where scikit-learn expects them of its own counterpart, and nowhere else.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import check_estimator

from linnet import models

FUNCTIONS = {"enet_path", "lasso_path", "Statistics"}
NAMES = [name for name in models.__all__ if name not in FUNCTIONS]
EXPECTED = {theirs.__name__: set(checks) for theirs, checks in PER_ESTIMATOR_XFAIL_CHECKS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_checks(name):
    estimator = getattr(models, name)()
    if name.startswith("MLP"):
        estimator.set_params(hidden_layer_sizes=(10,), max_iter=100)
    if name == "ElasticNetCV":
        estimator.set_params(alphas=10, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    beyond = {check: error for check, error in failed.items() if check not in EXPECTED.get(name, set())}
    assert not beyond
    assert len(results) > 40


def test_pipelines_and_searches():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    y = (x[:, 0] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), models.LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_).get_params()["logisticregression__C"] in (0.1, 1.0)


@pytest.mark.slow
def test_set_output_and_names_of_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.random.default_rng(0).standard_normal((20, 3)), columns=["a", "b", "c"])
    pca = models.PCA(2).set_output(transform="pandas").fit(table)
    assert list(pca.transform(table).columns) == ["pca0", "pca1"]
    model = models.LinearRegression().fit(table, table["a"] + 1)
    assert model.summary().names == ("a", "b", "c", "intercept")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[["b", "a", "c"]])


@pytest.mark.slow
def test_the_extra_is_named_where_scikit_learn_is_missing():
    import subprocess
    import sys

    code = "import sys; sys.modules['sklearn'] = None\nimport linnet.models"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode
    assert "pip install 'linnet-array[models]'" in done.stderr
