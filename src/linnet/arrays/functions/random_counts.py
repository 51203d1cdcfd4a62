"""Random counts of several kinds that belong together: drawn one kind after another, from what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.join_and_split import stack


class Counts:
    """Methods of a generator that draw counts; it has `binomial` and `hypergeometric`."""

    binomial: Callable[..., Any]
    hypergeometric: Callable[..., Any]

    def multinomial(self, n: Any, pvals: Any, size: Any = None, *, chunks: Any = None) -> Any:
        """How often each of several results came in `n` trials, on a new axis at the end.

        Each count is binomial, among the trials that had none of the results before it; the last result
        gets what is left, whatever its own chance says.

        >>> from linnet.arrays.functions.random_numbers import default_rng
        >>> default_rng(1).multinomial(20, [0.5, 0.3, 0.2], size=1000).sum(axis=-1).max().compute()
        np.int64(20)
        """
        chances = np.asarray(pvals, float)
        if not chances.ndim or not chances.shape[-1]:
            raise ValueError(f"pvals needs a last axis with a chance for each result, got {chances.shape}")
        # NumPy's own checks, with its own words.
        trials = 0 if isinstance(n, ArrayBase) else n
        np.random.Generator(np.random.SFC64(0)).multinomial(trials, chances)
        rest = 1.0 - (chances.cumsum(axis=-1) - chances)
        shares = np.clip(np.divide(chances, rest, out=np.zeros_like(chances), where=rest > 0), 0.0, 1.0)
        shares[..., -1] = 1.0
        found: list[Any] = []
        left = n
        for kind in range(shares.shape[-1]):
            share = shares[..., kind] if chances.ndim > 1 else float(shares[kind])
            first = {"size": size, "chunks": chunks} if not found else {"chunks": found[0].chunks}
            found.append(self.binomial(left, share, **first))
            left = apply(np.subtract, left, found[-1])
        return stack(found, -1)

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Any = None, method: Any = "marginals", *, chunks: Any = None
    ) -> Any:
        """How many of each colour are among `nsample` drawn without putting back, on a new axis at the end.

        `method` is NumPy's and has no meaning here: each count is hypergeometric, given those before it.

        >>> from linnet.arrays.functions.random_numbers import default_rng
        >>> default_rng(1).multivariate_hypergeometric([3, 5], 8, size=2).compute()
        array([[3, 5],
               [3, 5]])
        """
        # NumPy's own checks, with its own words.
        np.random.Generator(np.random.SFC64(0)).multivariate_hypergeometric(
            colors, nsample, size=1, method=method
        )
        amounts = [int(each) for each in np.asarray(colors)]
        found: list[Any] = []
        left: Any = int(nsample)
        for kind, amount in enumerate(amounts):
            first = {"size": size, "chunks": chunks} if not found else {"chunks": found[0].chunks}
            found.append(self.hypergeometric(amount, sum(amounts[kind + 1 :]), left, **first))
            left = apply(np.subtract, left, found[-1])
        return stack(found, -1)
