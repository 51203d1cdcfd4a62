"""Small neural networks: layers of sums and activations, fitted by L-BFGS on all rows or by Adam on parts of
them.

Derivatives go backwards through the layers inside one kernel, tile by tile; sums of tiles are the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.nodes import Node
from linnet.arrays.lowering.evaluate import computed
from linnet.kernels.models.row_passes import layer_shapes, layers
from linnet.models import inputs
from linnet.models.class_labels import batch_codes, encoded
from linnet.models.design import Evaluation, Vector, column
from linnet.models.linear import r2
from linnet.models.passing import each_rows, summed_rows
from linnet.models.solvers import Progress, Solution, check_finite, lbfgs, warn_of_end
from linnet.tiles import Layout

_ACTIVATIONS = ("identity", "logistic", "tanh", "relu")


class _Network:
    """The loss of a network over rows, as solvers see it."""

    def __init__(self, x: Node, y: Node, sizes: tuple[int, ...], activation: str, kind: str) -> None:
        self.x, self.y = x, y
        self.attributes = {"sizes": sizes, "activation": activation, "kind": kind}
        self.size = sum(a * b for a, b in layer_shapes(sizes))

    def evaluate(self, coef: Vector, curvature: str = "none") -> Evaluation:
        """Loss and gradient: one reading of the data."""
        node = summed_rows("mlp_pass", self.x, (coef, self.y), 2 + self.size, **self.attributes)
        (line,) = computed([node])
        return Evaluation(float(line[0]), float(line[1]), np.array(line[2:]), None)

    def part(self, start: int, stop: int) -> _Network:
        """The same network on some of the rows."""
        x, y = wrap(self.x)[start:stop], wrap(self.y)[start:stop]
        made = _Network(as_node(x), as_node(y), **self.attributes)
        made.y = recut(made.y, Layout((made.x.layout.boundaries[0], *made.y.layout.boundaries[1:])))
        return made


class _Perceptron(BaseEstimator):
    """What both networks do."""

    coefs_: list[Vector]
    intercepts_: list[Vector]

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        *,
        activation: str = "relu",
        solver: str = "lbfgs",
        alpha: float = 1e-4,
        batch_size: int = 200,
        learning_rate: float = 1e-3,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> tuple[int, ...]:
        hidden = tuple(np.atleast_1d(self.hidden_layer_sizes).astype(int).tolist())
        if any(each < 1 for each in hidden):
            raise ValueError(f"hidden_layer_sizes must be > 0, got {self.hidden_layer_sizes}.")
        if self.activation not in _ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(_ACTIVATIONS)}; got {self.activation!r}")
        if self.solver not in ("lbfgs", "adam"):
            raise ValueError(f"solver must be 'lbfgs' or 'adam'; got {self.solver!r}")
        return hidden

    def _train(self, x: Node, y: Node, kind: str, outputs: int) -> None:
        sizes = (x.shape[1], *self._check_parameters(), outputs)
        loss = _Network(x, y, sizes, self.activation, kind)
        random = check_random_state(self.random_state)
        flat = self._begin(sizes, random)
        first = loss.evaluate(flat)
        check_finite(first, type(self).__name__)
        weight = first.weight
        # alpha / 2 times the squares, for each row: as scikit-learn has it, over the number of rows.
        penalty = np.zeros(loss.size)
        for matrix in layers(penalty, sizes):
            matrix[:-1] = self.alpha
        progress = Progress(self.verbose, self.max_iter, type(self).__name__)
        if self.solver == "lbfgs":
            found = lbfgs(loss, flat, penalty, tol=self.tol, max_iter=self.max_iter, progress=progress)
        else:
            found = self._adam(loss, flat, penalty / weight, random, progress)
        warn_of_end(found, type(self).__name__, self.max_iter)
        self.n_iter_ = max(1, found.iterations)
        self._keep(sizes, found, weight)

    def _learn(self, x: Node, y: Node, kind: str, outputs: int) -> None:
        """One epoch of Adam over a batch of rows."""
        sizes = (x.shape[1], *self._check_parameters(), outputs)
        loss = _Network(x, y, sizes, self.activation, kind)
        random = check_random_state(self.random_state)
        first = getattr(self, "_sizes", None) != sizes
        flat = self._begin(sizes, random) if first else self._flat
        if first:
            check_finite(loss.evaluate(flat), type(self).__name__)
        penalty = np.zeros(loss.size)
        for matrix in layers(penalty, sizes):
            matrix[:-1] = self.alpha / x.shape[0]
        progress = Progress(0, 1, type(self).__name__)
        self.n_iter_ = 1 + (0 if first else self.n_iter_)
        self._keep(sizes, self._adam(loss, flat, penalty, random, progress, 1), x.shape[0])

    def _keep(self, sizes: tuple[int, ...], found: Solution, weight: float) -> None:
        if not np.isfinite(found.coef).all():
            raise ValueError("Input X or y contains NaN or infinity; remove or fill these rows first")
        self._sizes, self._flat = sizes, found.coef
        matrices = layers(found.coef, sizes)
        self.coefs_ = [matrix[:-1].copy() for matrix in matrices]
        self.intercepts_ = [matrix[-1].copy() for matrix in matrices]
        self.loss_ = found.objective / weight
        self.n_layers_, self.n_outputs_ = len(sizes), sizes[-1]

    def _begin(self, sizes: tuple[int, ...], random: np.random.RandomState) -> Vector:
        """Random parameters, spread as Glorot and Bengio (2010) have it; those of the last fit, if asked."""
        if self.warm_start and getattr(self, "_sizes", None) == sizes:
            return self._flat.copy()
        parts = []
        factor = 2.0 if self.activation == "logistic" else 6.0
        for a, b in layer_shapes(sizes):
            bound = np.sqrt(factor / (a - 1 + b))
            parts.append(random.uniform(-bound, bound, a * b))
        return np.concatenate(parts)

    def _adam(
        self,
        loss: _Network,
        flat: Vector,
        penalty: Vector,
        random: np.random.RandomState,
        progress: Progress,
        epochs: int | None = None,
    ) -> Solution:
        """Adam (Kingma and Ba, 2015) on runs of neighbouring rows, in an order drawn anew for each epoch."""
        rows = loss.x.shape[0]
        size = max(1, min(int(self.batch_size), rows))
        parts = [loss.part(start, min(start + size, rows)) for start in range(0, rows, size)]
        mean, square, steps = np.zeros_like(flat), np.zeros_like(flat), 0
        flat, history, still = flat.copy(), [], 0
        epochs = self.max_iter if epochs is None else epochs
        for epoch in range(1, epochs + 1):
            total = 0.0
            for place in random.permutation(len(parts)):
                found = parts[place].evaluate(flat)
                gradient = found.gradient / found.weight + penalty * flat
                total += found.loss + 0.5 * found.weight * float(penalty @ flat**2)
                steps += 1
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                rate = self.learning_rate * np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
                flat -= rate * mean / (np.sqrt(square) + 1e-8)
            best = min(history, default=np.inf)
            history.append(total)
            progress(epoch, total / rows, (best - total) / rows)
            still = still + 1 if total / rows > best / rows - self.tol else 0
            if still > 10:
                return Solution(flat, epoch, True, total, False, None, history)
        return Solution(flat, epochs, False, history[-1], False, None, history)

    def _output(self, X: Any) -> tuple[Any, bool]:
        check_is_fitted(self)
        X = inputs.checked(self, X, reset=False)
        node = each_rows(
            "mlp_output",
            inputs.rows(X),
            (self._flat,),
            self.n_outputs_,
            sizes=self._sizes,
            activation=self.activation,
        )
        lazy = inputs.lazy(X)
        return wrap(node) if lazy else computed([node])[0], lazy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class MLPClassifier(ClassifierMixin, _Perceptron):
    """A network for classes: softmax at its end.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int
    activation : {"relu", "tanh", "logistic", "identity"}
    solver : {"lbfgs", "adam"}
        "lbfgs" reads all rows in each iteration, "adam" `batch_size` of them in each step.
    alpha : float
        The l2 penalty, over the number of rows.
    batch_size, learning_rate
        Of "adam".
    max_iter, tol, random_state, warm_start, verbose
        As in scikit-learn.

    Attributes
    ----------
    classes_, coefs_, intercepts_, loss_, n_iter_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = MLPClassifier((8,), activation="tanh", random_state=0).fit(x, [0, 1, 1, 0])
    >>> model.predict(x).tolist()
    [0, 1, 1, 0]
    """

    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the network.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = inputs.checked_pair(self, X, y, numeric=False)
        if not inputs.lazy(y):
            check_classification_targets(y)
        self.classes_, codes = encoded(y)
        node = inputs.rows(X)
        self._train(node, column(codes, node.layout), "classes", len(self.classes_))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """Learn from one more batch of rows: an epoch of Adam over it.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, optional
            All classes there will be; the first call needs them.

        Returns
        -------
        self
        """
        first = not hasattr(self, "classes_")
        X, y = inputs.checked_pair(self, X, y, numeric=False, reset=first)
        self.classes_, codes = batch_codes(getattr(self, "classes_", None), classes, y)
        node = inputs.rows(X)
        self._learn(node, column(codes, node.layout), "classes", len(self.classes_))
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        output, _ = self._output(X)
        grown = np.exp(output - output.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """The likeliest class of each row.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        column of length n_samples; lazy, and numbers of classes in `classes_`, for a lazy table
        """
        output, lazy = self._output(X)
        places = output.argmax(axis=1)
        return places if lazy else self.classes_[places]


class MLPRegressor(RegressorMixin, _Perceptron):
    """A network for numbers: squares of errors at its end.

    Parameters
    ----------
    hidden_layer_sizes, activation, solver, alpha, max_iter, tol, random_state and others
        As for `MLPClassifier`.

    Attributes
    ----------
    coefs_, intercepts_, loss_, n_iter_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 30)[:, None]
    >>> model = MLPRegressor((10,), activation="tanh", random_state=0, max_iter=500).fit(x, x[:, 0] ** 2)
    >>> model.score(x, x[:, 0] ** 2) > 0.99
    True
    """

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the network.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
        y : column of length n_samples, or a table of such

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = inputs.checked_pair(self, X, y, multi_output=True)
        node, cut = self._cut(X, y)
        self._train(node, cut, "numbers", cut.shape[1])
        return self

    def _cut(self, X: Any, y: Any) -> tuple[Node, Node]:
        """Rows and targets in the same tiles."""
        node = inputs.rows(X)
        self._single = y.ndim == 1
        targets = as_node(y[:, None] if self._single else y)
        return node, recut(targets, Layout((node.layout.boundaries[0], (0, targets.shape[1]))))

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Learn from one more batch of rows: an epoch of Adam over it.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        self
        """
        X, y = inputs.checked_pair(self, X, y, multi_output=True, reset=not hasattr(self, "coefs_"))
        node, cut = self._cut(X, y)
        self._learn(node, cut, "numbers", cut.shape[1])
        return self

    def predict(self, X: Any) -> Any:
        """The prediction for each row; lazy for a lazy table.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)

        Returns
        -------
        array
        """
        output, _ = self._output(X)
        return output[:, 0] if self._single else output

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained.

        Parameters
        ----------
        X, y
            As in `fit`.
        sample_weight : column of length n_samples, optional

        Returns
        -------
        float
        """
        return r2(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
