"""The data of a fit, cut into tiles of rows, and one pass over them.

A `Design` holds lazy arrays: the table `x` with all columns in one tile, `y`, weights and offsets cut alike.
A pass is an expression like any other (a kernel on each tile, a sum over tiles), so any engine runs it, the
same program serves every iteration, and only the sums leave the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase, as_node
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, folded, recut
from linnet.arrays.expression.nodes import Along, At, Node, Operand, Piece, Source
from linnet.arrays.lowering.evaluate import computed
from linnet.kernels.models.glm import HEAD
from linnet.tiles import Layout

Vector = NDArray[Any]
_STORED = ("glm_pass", "softmax_pass")
"""Kernels that there are for sparse rows too; the others see rows made dense, a tile at a time."""
WIDE = 2048
"""Columns from which the Hessian is cut into tiles, and factored by the tiled Cholesky."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a pass tells."""

    loss: float
    weight: float
    """The weight of all rows; their number, without weights."""
    gradient: Vector
    hessian: Vector | None


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A family with its link and parameter, as kernels take them."""

    family: str
    link: str
    parameter: float = 0.0

    def attributes(self) -> dict[str, Any]:
        """As keywords of a kernel."""
        return {"family": self.family, "link": self.link, "parameter": float(self.parameter)}


def row_layout(x: Node) -> Layout:
    """Tiles of whole rows. Those of the user's arrays are kept, arrays in memory are cut for many workers."""
    columns = (0, x.shape[1])
    if isinstance(x, Source) and x._layout is None:
        # A tile gives as many numbers as the square of its columns: it should have more rows than that.
        size = max(chunking.target(), 8 * x.shape[1] ** 2)
        rows = max(1, size // (max(1, x.shape[1]) * 8))
        return Layout(((*range(0, x.shape[0], rows), x.shape[0]), columns))
    return Layout((x.layout.boundaries[0], columns))


def by_rows(x: Node) -> Node:
    """The same table in tiles of whole rows."""
    return recut(x, row_layout(x))


def column(values: Any, layout: Layout) -> Node:
    """A number for each row, as doubles, cut as the table is."""
    node = as_node(values)
    if node.dtype.kind != "f" or node.dtype.itemsize < 4:
        node = cast(node, np.float64)
    return recut(node, Layout((layout.boundaries[0],)))


def table(values: NDArray[Any]) -> Source:
    """A small array in one tile."""
    values = np.ascontiguousarray(values, np.float64)
    return Source(values, chunking.whole(values.shape))


@dataclass(slots=True, eq=False)
class Design:
    """A table of rows with what belongs to each row."""

    x: Node
    y: Node
    weight: Node | None = None
    offset: Node | None = None
    intercept: bool = True
    shift: Vector | None = None
    """What is taken off the columns."""
    flat: NDArray[np.bool_] | None = None
    """Columns of which nothing is left then but rounding: these say nothing, and their coefficients stay."""
    stored: tuple[Node, Node, Node] | None = None
    """Of a sparse table: what is stored, the column of each element, and how many each row has."""
    held: Node | None = None
    """Rows that nothing is learned from: 1 for these, 0 for the others."""
    passes: int = field(default=0)
    """How often the data were read."""

    @classmethod
    def of(cls, x: Any, y: Any, weight: Any = None, offset: Any = None, *, intercept: bool = True) -> Design:
        """From arrays of ours or of NumPy's."""
        rows = by_rows(x.__node__ if isinstance(x, ArrayBase) else Source(np.asarray(x)))
        layout = rows.layout
        along = [None if each is None else column(each, layout) for each in (weight, offset)]
        return cls(rows, column(y, layout), along[0], along[1], intercept)

    @property
    def columns(self) -> int:
        """Coefficients, that of the intercept counted."""
        return self.x.shape[1] + self.intercept

    def line(self, kernel: str, coef: NDArray[Any], length: int, **attributes: Any) -> Node:
        """The sum of what a kernel gives for each tile of rows: a lazy array of so many numbers."""
        inputs: list[Node] = [self.x]
        accesses: list[Any] = [(Along(0), At(0))]
        if self.stored is not None and kernel in _STORED:
            kernel = f"stored_{kernel}"
            inputs, accesses = list(self.stored), [(Along(0),)] * 3
        inputs.append(table(coef))
        accesses.append((At(0),) * coef.ndim)
        letters = ""
        small = {"s": self.shift, "z": attributes.pop("scale", None), "d": attributes.pop("spread", None)}
        rows = {"y": self.y, "w": self.weight, "o": self.offset, "h": self.held}
        for letter, node in (rows | small).items():
            if node is None:
                continue
            letters += letter
            inputs.append(node if isinstance(node, Node) else table(node))
            accesses.append((Along(0),) if isinstance(node, Node) else (At(0),))
        arguments = tuple(Operand(k, access) for k, access in enumerate(accesses))
        named = (("given", letters), *attributes.items(), ("intercept", self.intercept))
        layout = Layout((tuple(range(self.x.grid[0] + 1)), (0, length)))
        lines = blocks(inputs, (Piece(kernel, arguments, named),), layout, np.float64)
        return folded(lines, "sum", (0,), np.float64, inner=np.float64)

    def read(self, node: Node) -> NDArray[Any]:
        """Compute a line: one reading of the data."""
        self.passes += 1
        return computed([node])[0]

    def statistics(self, model: Model, coef: Vector, scale: float = 1.0) -> Vector:
        """Deviance, Pearson's chi-square, log-likelihood and weight at coefficients."""
        at = np.array([scale])
        return self.read(self.line("glm_statistics", coef, 4, scale=at, **model.attributes()))


def evaluation(
    design: Design, line: NDArray[Any], columns: int, wanted: bool, classes: int = 1
) -> Evaluation:
    """A line of numbers as what they mean."""
    gradient = np.array(line[HEAD : HEAD + columns])
    hessian = np.array(line[HEAD + columns :]).reshape(columns, columns) if wanted else None
    if design.flat is not None:
        silent = np.zeros((classes, columns // classes), np.bool_)
        silent[:, : len(design.flat)] = design.flat
        gradient[silent.ravel()] = 0.0
        if hessian is not None:
            hessian[silent.ravel()] = 0.0
            hessian[:, silent.ravel()] = 0.0
    return Evaluation(float(line[0]), float(line[1]), gradient, hessian)


class Rows:
    """The loss of a family over a design, as solvers see it."""

    def __init__(self, design: Design, model: Model) -> None:
        self.design = design
        self.model = model
        self.size: int = design.columns

    def expression(self, coef: Vector, curvature: str = "observed") -> Node:
        """The lazy array behind `evaluate`."""
        from linnet.kernels.models.glm import line_length

        length = line_length(self.size, curvature != "none")
        return self.design.line("glm_pass", coef, length, curvature=curvature, **self.model.attributes())

    def evaluate(self, coef: Vector, curvature: str = "observed") -> Evaluation:
        """Loss, gradient and, unless `curvature` is "none", the Hessian: one reading of the data."""
        line = self.design.read(self.expression(coef, curvature))
        return evaluation(self.design, line, self.size, curvature != "none")

    def start(self, mean: float) -> Evaluation:
        """The first step of reweighted least squares, where no coefficients are known yet."""
        from linnet.kernels.models.glm import line_length

        length = line_length(self.size, True)
        attributes = self.model.attributes()
        return evaluation(
            self.design,
            self.design.read(self.design.line("glm_start", np.array([mean]), length, **attributes)),
            self.size,
            True,
        )


class Classes:
    """The loss of a multinomial model: coefficients are classes times columns, in one vector."""

    def __init__(self, design: Design, classes: int, *, lifted: bool = True) -> None:
        self.design = design
        self.classes = classes
        self.lifted = lifted
        """Whether the Hessian is made positive definite."""
        self.size: int = classes * design.columns

    def expression(self, coef: Vector, curvature: str = "observed") -> Node:
        """The lazy array behind `evaluate`."""
        from linnet.kernels.models.glm import line_length

        shaped = coef.reshape(self.classes, -1)
        length = line_length(self.size, curvature != "none")
        return self.design.line("softmax_pass", shaped, length, curvature=curvature)

    def evaluate(self, coef: Vector, curvature: str = "observed") -> Evaluation:
        """Loss, gradient and Hessian: one reading of the data."""
        line = self.design.read(self.expression(coef, curvature))
        found = evaluation(self.design, line, self.size, curvature != "none", self.classes)
        if found.hessian is None or not self.lifted:
            return found
        # The same vector added to all classes changes nothing: along these directions the Hessian is 0. The
        # gradient is 0 there too, so whatever is added along them leaves the steps as they are.
        size = self.design.columns
        diagonal = np.diag(found.hessian).reshape(self.classes, size).mean(axis=0)
        blocks_ = found.hessian.reshape(self.classes, size, self.classes, size)
        blocks_[:, np.arange(size), :, np.arange(size)] += diagonal[:, None, None] / self.classes
        return found


class Dispersion:
    """The loss of a negative binomial model whose dispersion is its last coefficient."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.size: int = design.columns + 1

    def expression(self, coef: Vector, curvature: str = "observed") -> Node:
        """The lazy array behind `evaluate`."""
        from linnet.kernels.models.glm import line_length

        length = line_length(self.size, True)
        return self.design.line("glm_dispersion", coef, length, curvature="observed")

    def evaluate(self, coef: Vector, curvature: str = "observed") -> Evaluation:
        """Loss, gradient and Hessian: one reading of the data."""
        if coef[-1] <= 0:  # no such dispersion: the step that leads there is too long
            nothing = np.zeros(self.size)
            return Evaluation(np.inf, 0.0, nothing, np.zeros((self.size, self.size)))
        return evaluation(self.design, self.design.read(self.expression(coef)), self.size, True)
