"""A small convolutional network that learns to tell lines that lie from lines that stand, with `ln.grad`.

python examples/convolutional_network.py
"""

import numpy as np

import linnet as ln

PICTURES, SIZE, FILTERS = 200, 12, 3


def pictures(rng):
    """Noise with a line across each picture, lying (0) or standing (1)."""
    found = rng.normal(scale=0.3, size=(PICTURES, SIZE, SIZE))
    kinds = rng.integers(0, 2, PICTURES)
    for picture, kind in zip(found, kinds, strict=True):
        place = rng.integers(1, SIZE - 1)
        picture[(place, slice(None)) if kind == 0 else (slice(None), place)] += 1
    return found, kinds


def scores(filters, bias, weights, x):
    """How sure the network is that lines stand: filters, what is positive, its mean, a weighted sum."""
    total = 0
    for k in range(FILTERS):
        seen = ln.convolve(x, filters[k : k + 1], "valid")  # along pictures, the filter has length 1
        total = total + weights[k] * ln.mean(ln.maximum(seen + bias[k], 0), axis=(1, 2))
    return total + weights[FILTERS]


def loss(filters, bias, weights, x, signs):
    return ln.mean(ln.logaddexp(0, -signs * scores(filters, bias, weights, x)))


def main():
    rng = np.random.default_rng(0)
    values, kinds = pictures(rng)
    x = ln.asarray(values, chunks=(50, SIZE, SIZE))
    signs = ln.asarray(2.0 * kinds - 1, chunks=50)
    parameters = [
        ln.asarray(rng.normal(size=(FILTERS, 3, 3)) / 3),
        ln.zeros(FILTERS),
        ln.asarray(rng.normal(size=FILTERS + 1)),
    ]
    slope = ln.value_and_grad(loss, argnums=(0, 1, 2))
    for step in range(60):
        value, gradients = slope(*parameters, x, signs)
        value, gradients = ln.compute(value, gradients)
        parameters = [p - 2.0 * g for p, g in zip(parameters, gradients, strict=True)]
        if step % 20 == 0:
            print(f"step {step:2d}: loss {value:.3f}")
    right = np.asarray(scores(*parameters, x) > 0) == (kinds == 1)
    print(f"pictures told apart: {right.mean():.0%}")


if __name__ == "__main__":
    main()
