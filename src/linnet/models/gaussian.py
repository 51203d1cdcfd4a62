"""Kernel ridge regression and Gaussian processes, by the tiled Cholesky factorisation.

The matrix of similarities of all pairs of rows is an expression of products and exponentials; it, its factor
and the solutions are one program, and no process holds the whole matrix unless it is small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.nodes import Source
from linnet.arrays.linalg.factorisations import cholesky
from linnet.arrays.linalg.linear_systems import solve, solve_triangular
from linnet.arrays.lowering.evaluate import computed
from linnet.arrays.namespace import names
from linnet.errors import LinAlgError
from linnet.models import inputs
from linnet.models.design import Vector
from linnet.models.linear import r2

KERNELS = ("linear", "polynomial", "rbf", "laplacian", "matern32", "matern52")


def _lazy(x: Any) -> Any:
    return x if inputs.lazy(x) else wrap(Source(np.ascontiguousarray(x, np.float64)))


def squared_distances(x: Any, z: Any) -> Any:
    """The squared distance of each row of a table from each row of another; lazy."""
    squares = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1)[None, :] - 2.0 * (x @ z.T)
    return np.maximum(squares, 0.0)


def _cityblock(x: Any, z: Any) -> Any:
    """Sums of absolute differences, a column at a time."""
    total = None
    for k in range(x.shape[1]):
        part = np.abs(x[:, k][:, None] - z[:, k][None, :])
        total = part if total is None else total + part
    return total


class KernelRidge(RegressorMixin, BaseEstimator):
    """Ridge regression on similarities of rows.

    Parameters
    ----------
    alpha : float, or one for each column of y
        The penalty.
    kernel : {"linear", "polynomial", "rbf", "laplacian"}
    gamma : float, optional
        Of all kernels but the linear one; one over the number of columns without it.
    degree, coef0
        Of the polynomial kernel.

    Attributes
    ----------
    dual_coef_, X_fit_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> model = KernelRidge(alpha=1e-6, kernel="rbf", gamma=10.0).fit(x, np.sin(6 * x[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(3.0)) < 1e-2)
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def _similar(self, x: Any, z: Any) -> Any:
        gamma = 1.0 / x.shape[1] if self.gamma is None else self.gamma
        if self.kernel == "linear":
            return x @ z.T
        if self.kernel == "polynomial":
            return (gamma * (x @ z.T) + self.coef0) ** self.degree
        if self.kernel == "rbf":
            return np.exp(-gamma * squared_distances(x, z))
        if self.kernel == "laplacian":
            return np.exp(-gamma * _cityblock(x, z))
        raise ValueError(f"KernelRidge has no kernel {self.kernel!r}; use one of {', '.join(KERNELS[:4])}")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples, or a table of such
        sample_weight : column of length n_samples, optional

        Returns
        -------
        self
        """
        X, y = inputs.checked_pair(self, X, y, sparse_too=False, multi_output=True)
        alpha = np.atleast_1d(np.asarray(self.alpha, np.float64))
        if not (alpha >= 0).all():
            raise ValueError(f"alpha must be at least 0; got {self.alpha!r}")
        x = _lazy(X)
        targets = _lazy(y) if y.ndim == 2 else _lazy(y)[:, None]
        matrix = self._similar(x, x)
        weight = inputs.weights(sample_weight, X, X.shape[0])
        if weight is not None:
            root = np.sqrt(_lazy(weight))
            matrix, targets = matrix * root[:, None] * root[None, :], targets * root[:, None]
        if len(alpha) not in (1, targets.shape[1]):
            raise ValueError(
                f"{len(alpha)} penalties for {targets.shape[1]} columns of y; give one, or one for each"
            )
        parts = [self._solved(matrix, targets, alpha[0])]
        if len(alpha) > 1:
            parts = [self._solved(matrix, targets[:, k : k + 1], a) for k, a in enumerate(alpha)]
        dual = np.concatenate(computed([as_node(each) for each in parts]), axis=1)
        if weight is not None:
            dual = dual * np.sqrt(np.asarray(weight))[:, None]
        if not np.isfinite(dual).all():
            raise ValueError("Input X or y contains NaN or infinity; remove or fill these rows first")
        self.dual_coef_ = dual if y.ndim == 2 else dual[:, 0]
        self.X_fit_ = X
        return self

    def _solved(self, matrix: Any, targets: Any, alpha: float) -> Any:
        count = matrix.shape[0]
        shifted = matrix + alpha * names()["eye"](count, chunks=matrix.chunks[0][0])
        if alpha > 0 and self.kernel != "polynomial":
            factor = cholesky(shifted)
            below = solve_triangular(factor, targets, lower=True)
            return solve_triangular(factor.T, below, lower=False)
        return solve(shifted, targets)

    def predict(self, X: Any) -> Any:
        """The prediction for each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        array
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False, sparse_too=False)
        made = self._similar(_lazy(X), _lazy(self.X_fit_)) @ wrap(
            Source(np.ascontiguousarray(self.dual_coef_))
        )
        return made if inputs.lazy(X) else np.asarray(made)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        return r2(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class GaussianProcessRegressor(RegressorMixin, BaseEstimator):
    """A Gaussian process with a stationary kernel: `variance · k(distance / length_scale)`, plus noise.

    Parameters
    ----------
    kernel : {"rbf", "matern32", "matern52"}
    length_scale, variance, noise : float
        Of the kernel, and the variance of noise; where the search begins, if they are optimised.
    optimize : bool
        Whether the three are those of the largest marginal likelihood (found with its gradient).
    normalize_y : bool
        Whether the mean of y is taken off, and y scaled to variance 1, before the fit.

    Attributes
    ----------
    length_scale_, variance_, noise_ : float
        As found or given; of y as it was scaled.
    log_marginal_likelihood_value_ : float
    alpha_ : array
        The dual coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 12)[:, None]
    >>> model = GaussianProcessRegressor(length_scale=0.3).fit(x, np.sin(6 * x[:, 0]))
    >>> mean, deviation = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 1e-2)
    True
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        length_scale: float = 1.0,
        variance: float = 1.0,
        noise: float = 1e-6,
        optimize: bool = True,
        normalize_y: bool = True,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.variance = variance
        self.noise = noise
        self.optimize = optimize
        self.normalize_y = normalize_y

    def _similar(self, squares: Any, length: float) -> tuple[Any, Any]:
        """The kernel without its variance, and its derivative by the logarithm of the length."""
        if self.kernel == "rbf":
            k = np.exp(-0.5 / length**2 * squares)
            return k, k * squares / length**2
        r = np.sqrt(squares) / length
        if self.kernel == "matern32":
            decay = np.exp(-math.sqrt(3) * r)
            return (1 + math.sqrt(3) * r) * decay, 3 * r * r * decay
        decay = np.exp(-math.sqrt(5) * r)
        return (1 + math.sqrt(5) * r + 5 / 3 * r * r) * decay, 5 / 3 * r * r * (1 + math.sqrt(5) * r) * decay

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the process.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples

        Returns
        -------
        self
        """
        if self.kernel not in ("rbf", "matern32", "matern52"):
            raise ValueError(
                f"GaussianProcessRegressor has no kernel {self.kernel!r}; use 'rbf', 'matern32' or 'matern52'"
            )
        if not min(self.length_scale, self.variance, self.noise) > 0:
            raise ValueError("length_scale, variance and noise must be positive")
        X, y = inputs.checked_pair(self, X, y, sparse_too=False)
        y = np.asarray(y, np.float64)
        self._mean = float(y.mean()) if self.normalize_y else 0.0
        self._scale = (float(y.std()) or 1.0) if self.normalize_y else 1.0
        if not np.isfinite(self._scale):
            raise ValueError("Input y contains NaN or infinity; remove or fill these rows first")
        self.X_train_ = X
        self.y_train_: Any = (y - self._mean) / self._scale
        start = np.log([self.length_scale, self.variance, self.noise])
        if self.optimize and len(y) > 1:
            bounds = [
                (math.log(1e-5), math.log(1e5)),
                (math.log(1e-5), math.log(1e5)),
                (math.log(1e-10), math.log(1e5)),
            ]
            found = optimize.minimize(self._objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
            start = found.x
        self.length_scale_, self.variance_, self.noise_ = (float(each) for each in np.exp(start))
        self._keep()
        return self

    def _matrices(self, theta: Vector) -> tuple[Any, Any, Any]:
        """The covariance of rows, and its derivatives by the logarithms of length and variance."""
        length, variance, noise = np.exp(theta)
        x = _lazy(self.X_train_)
        k, by_length = self._similar(squared_distances(x, x), float(length))
        eye = names()["eye"](x.shape[0], chunks=k.chunks[0][0])
        return variance * k + noise * eye, variance * by_length, variance * k

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The logarithm of the likelihood of y, and its gradient.

        Parameters
        ----------
        theta : sequence of 3 numbers, optional
            Logarithms of length scale, variance and noise; as found without it.
        eval_gradient : bool

        Returns
        -------
        float, or float and array
        """
        check_is_fitted(self, "X_train_")
        if theta is None:
            theta = np.log([self.length_scale_, self.variance_, self.noise_])
        theta = np.asarray(theta, np.float64)
        matrix, by_length, by_variance = self._matrices(theta)
        factor = cholesky(matrix)
        y = _lazy(self.y_train_)[:, None]
        alpha = solve_triangular(factor.T, solve_triangular(factor, y, lower=True), lower=False)
        logs = np.log(names()["diagonal"](factor)).sum()
        wanted = [as_node((y * alpha).sum()), as_node(logs)]
        if eval_gradient:
            # tr((alpha·alphaᵀ - K⁻¹)·dK) / 2, with K⁻¹ = (L⁻ᵀ)(L⁻¹)
            below = solve_triangular(
                factor, names()["eye"](len(self.y_train_), chunks=matrix.chunks[0][0]), lower=True
            )
            inner = alpha @ alpha.T - below.T @ below
            noise = math.exp(theta[2])
            wanted += [as_node((inner * each).sum()) for each in (by_length, by_variance)]
            wanted.append(as_node(noise * names()["trace"](inner)))
        found = [float(each) for each in computed(wanted)]
        value = -0.5 * found[0] - found[1] - 0.5 * len(self.y_train_) * math.log(2 * math.pi)
        return (value, 0.5 * np.array(found[2:])) if eval_gradient else value

    def _objective(self, theta: Vector) -> tuple[float, Vector]:
        try:
            value, gradient = self.log_marginal_likelihood(theta, eval_gradient=True)
        except LinAlgError:
            return 1e25, np.zeros(3)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return 1e25, np.zeros(3)
        return -value, -gradient

    def _keep(self) -> None:
        matrix, _, _ = self._matrices(np.log([self.length_scale_, self.variance_, self.noise_]))
        factor = cholesky(matrix)
        y = _lazy(self.y_train_)[:, None]
        alpha = solve_triangular(factor.T, solve_triangular(factor, y, lower=True), lower=False)
        logs = np.log(names()["diagonal"](factor)).sum()
        try:
            found = computed([as_node(factor), as_node(alpha), as_node(logs)])
        except LinAlgError as error:
            raise LinAlgError(
                "the covariance of the rows is not positive definite: rows are too near one another for "
                "this length "
                "scale; give a larger noise"
            ) from error
        self.L_, self.alpha_ = found[0], found[1][:, 0]
        if not np.isfinite(self.alpha_).all():
            raise ValueError("Input X contains NaN or infinity; remove or fill these rows first")
        half = 0.5 * float(self.y_train_ @ self.alpha_)
        self.log_marginal_likelihood_value_: float = (
            -half - float(found[2]) - 0.5 * len(self.alpha_) * math.log(2 * math.pi)
        )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the process at each row, and its deviation.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        return_std : bool

        Returns
        -------
        mean : column of length n_samples
        deviation : column of length n_samples, if `return_std`
        """
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False, sparse_too=False)
        z, x = _lazy(X), _lazy(self.X_train_)
        k, _ = self._similar(squared_distances(z, x), self.length_scale_)
        k = self.variance_ * k
        mean = (k @ wrap(Source(self.alpha_))) * self._scale + self._mean
        lazy = inputs.lazy(X)
        if not return_std:
            return mean if lazy else np.asarray(mean)
        below = solve_triangular(wrap(Source(self.L_)), k.T, lower=True)
        deviation = np.sqrt(np.maximum(self.variance_ - (below * below).sum(axis=0), 0.0)) * self._scale
        return (
            (mean, deviation)
            if lazy
            else tuple(np.asarray(e) for e in computed([as_node(mean), as_node(deviation)]))
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        return r2(y, self.predict(X), sample_weight)
