"""What each element-wise function does, in words and by an example: their docstrings are made of this."""

from __future__ import annotations

import numpy as np

_MEANINGS = """
absolute: Absolute values; of complex numbers their distance from zero.
>>> ln.absolute([-2, 3]).compute()
array([2, 3])

add: Sums of elements, as `x1 + x2`.
>>> ln.add([1, 2], 10).compute()
array([11, 12])

arccos: The angle between 0 and π, in radians, that has the cosine `x`.
>>> ln.arccos([1.0, 0.0]).compute()
array([0.        , 1.57079633])

arccosh: The number, not negative, that has the hyperbolic cosine `x`.
>>> ln.arccosh([1.0, 2.0]).compute()
array([0.       , 1.3169579])

arcsin: The angle between -π/2 and π/2, in radians, that has the sine `x`.
>>> ln.arcsin([0.0, 1.0]).compute()
array([0.        , 1.57079633])

arcsinh: The number that has the hyperbolic sine `x`.
>>> ln.arcsinh([0.0, 1.0]).compute()
array([0.        , 0.88137359])

arctan: The angle between -π/2 and π/2, in radians, that has the tangent `x`.
>>> ln.arctan([0.0, 1.0]).compute()
array([0.        , 0.78539816])

arctan2: The angle, in radians, of the point with ordinate `x1` and abscissa `x2`, in the right quadrant.
>>> ln.arctan2([1.0, -1.0], [-1.0, -1.0]).compute()
array([ 2.35619449, -2.35619449])

arctanh: The number that has the hyperbolic tangent `x`.
>>> ln.arctanh([0.0, 0.5]).compute()
array([0.        , 0.54930614])

bitwise_and: The bits that both integers have, as `x1 & x2`.
>>> ln.bitwise_and([12, 7], 10).compute()
array([8, 2])

bitwise_count: How many bits of each integer (of its absolute value) are 1.
>>> ln.bitwise_count([7, 8]).compute()
array([3, 1], dtype=uint8)

bitwise_or: The bits that at least one of two integers has, as `x1 | x2`.
>>> ln.bitwise_or([12, 7], 10).compute()
array([14, 15])

bitwise_xor: The bits that exactly one of two integers has, as `x1 ^ x2`.
>>> ln.bitwise_xor([12, 7], 10).compute()
array([ 6, 13])

cbrt: Cube roots, of negative numbers too.
>>> ln.cbrt([27.0, -8.0]).compute()
array([ 3., -2.])

ceil: The smallest whole number that is not below `x`.
>>> ln.ceil([1.2, -1.2]).compute()
array([ 2., -1.])

conjugate: Complex conjugates: the imaginary part changes its sign.
>>> ln.conjugate([1 + 2j, 3.0]).compute()
array([1.-2.j, 3.-0.j])

copysign: The size of `x1` with the sign of `x2`.
>>> ln.copysign([1.0, 2.0], [-1.0, 1.0]).compute()
array([-1.,  2.])

cos: Cosines of angles in radians.
>>> ln.cos([0.0, 1.0]).compute()
array([1.        , 0.54030231])

cosh: Hyperbolic cosines.
>>> ln.cosh([0.0, 1.0]).compute()
array([1.        , 1.54308063])

deg2rad: Angles in degrees, as radians.
>>> ln.deg2rad([0.0, 180.0]).compute()
array([0.        , 3.14159265])

degrees: Angles in radians, as degrees.
>>> ln.degrees([0.0, ln.pi]).compute()
array([  0., 180.])

divide: Quotients, as `x1 / x2`; of integers they are floats.
>>> ln.divide([1, 3], 2).compute()
array([0.5, 1.5])

divmod: Quotients rounded down and remainders at once, as two arrays.
>>> ln.compute(*ln.divmod([7, -7], 3))
(array([ 2, -3]), array([1, 2]))

equal: Whether elements are equal, as `x1 == x2`.
>>> ln.equal([1, 2], [1, 3]).compute()
array([ True, False])

exp: The number e to the power of each element.
>>> ln.exp([0.0, 1.0]).compute()
array([1.        , 2.71828183])

exp2: 2 to the power of each element.
>>> ln.exp2([3.0, -1.0]).compute()
array([8. , 0.5])

expm1: `exp(x) - 1`, accurate for `x` near zero.
>>> ln.expm1([1e-10]).compute()
array([1.e-10])

fabs: Absolute values as floats; complex numbers are refused.
>>> ln.fabs([-2, 3]).compute()
array([2., 3.])

float_power: Powers, computed in double precision at least, so that integers may have negative exponents.
>>> ln.float_power([2, 4], -1).compute()
array([0.5 , 0.25])

floor: The largest whole number that is not above `x`.
>>> ln.floor([1.8, -1.8]).compute()
array([ 1., -2.])

floor_divide: Quotients rounded down, as `x1 // x2`.
>>> ln.floor_divide([7, -7], 2).compute()
array([ 3, -4])

fmax: The larger of two elements; where one is NaN, the other.
>>> ln.fmax([1.0, ln.nan], [0.0, 2.0]).compute()
array([1., 2.])

fmin: The smaller of two elements; where one is NaN, the other.
>>> ln.fmin([1.0, ln.nan], [0.0, 2.0]).compute()
array([0., 2.])

fmod: Remainders with the sign of the dividend, as in C.
>>> ln.fmod([7, -7], 3).compute()
array([ 1, -1])

frexp: A fraction between 0.5 and 1 and a power of 2 that give `x` when multiplied, as two arrays.
>>> ln.compute(*ln.frexp([8.0, 3.0]))
(array([0.5 , 0.75]), array([4, 2], dtype=int32))

gcd: Greatest common divisors.
>>> ln.gcd([12, 20], 8).compute()
array([4, 4])

greater: Whether `x1 > x2`.
>>> ln.greater([1, 3], 2).compute()
array([False,  True])

greater_equal: Whether `x1 >= x2`.
>>> ln.greater_equal([1, 2], 2).compute()
array([False,  True])

heaviside: 0 where `x1` is negative, 1 where it is positive, `x2` where it is zero.
>>> ln.heaviside([-1.0, 0.0, 2.0], 0.5).compute()
array([0. , 0.5, 1. ])

hypot: `sqrt(x1**2 + x2**2)`, without overflow on the way.
>>> ln.hypot([3.0, 1e200], [4.0, 1e200]).compute()
array([5.00000000e+000, 1.41421356e+200])

invert: The bits of integers turned over, or `not` of booleans, as `~x`.
>>> ln.invert([True, False]).compute()
array([False,  True])

isfinite: Whether elements are neither infinite nor NaN.
>>> ln.isfinite([1.0, ln.inf, ln.nan]).compute()
array([ True, False, False])

isinf: Whether elements are infinite, of either sign.
>>> ln.isinf([1.0, -ln.inf, ln.nan]).compute()
array([False,  True, False])

isnan: Whether elements are NaN.
>>> ln.isnan([1.0, ln.nan]).compute()
array([False,  True])

isnat: Whether dates or spans of time are `NaT`, not a time.
>>> ln.isnat(ln.asarray(np.array(["2026-01-01", "NaT"], "M8[D]"))).compute()
array([False,  True])

lcm: Least common multiples.
>>> ln.lcm([4, 6], 10).compute()
array([20, 30])

ldexp: `x1 * 2**x2`: floats from fractions and powers, as `frexp` gives them.
>>> ln.ldexp([0.5, 0.75], [4, 2]).compute()
array([8., 3.])

left_shift: Bits of integers moved to the left, as `x1 << x2`.
>>> ln.left_shift([1, 3], 2).compute()
array([ 4, 12])

less: Whether `x1 < x2`.
>>> ln.less([1, 3], 2).compute()
array([ True, False])

less_equal: Whether `x1 <= x2`.
>>> ln.less_equal([1, 3], 1).compute()
array([ True, False])

log: Natural logarithms.
>>> ln.log([1.0, ln.e]).compute()
array([0., 1.])

log10: Logarithms to base 10.
>>> ln.log10([1.0, 1000.0]).compute()
array([0., 3.])

log1p: `log(1 + x)`, accurate for `x` near zero.
>>> ln.log1p([1e-10]).compute()
array([1.e-10])

log2: Logarithms to base 2.
>>> ln.log2([1.0, 8.0]).compute()
array([0., 3.])

logaddexp: `log(exp(x1) + exp(x2))` without overflow: the sum of probabilities given as logarithms.
>>> ln.logaddexp([1000.0], [1000.0]).compute()
array([1000.69314718])

logaddexp2: `log2(2**x1 + 2**x2)` without overflow.
>>> ln.logaddexp2([1000.0], [1000.0]).compute()
array([1001.])

logical_and: Whether both elements are true, or not zero.
>>> ln.logical_and([True, True], [True, False]).compute()
array([ True, False])

logical_not: Whether elements are false, or zero.
>>> ln.logical_not([0, 2]).compute()
array([ True, False])

logical_or: Whether at least one of two elements is true, or not zero.
>>> ln.logical_or([False, True], [False, False]).compute()
array([False,  True])

logical_xor: Whether exactly one of two elements is true, or not zero.
>>> ln.logical_xor([True, True], [True, False]).compute()
array([False,  True])

maximum: The larger of two elements; NaN where one is NaN.
>>> ln.maximum([1.0, ln.nan], [2.0, 2.0]).compute()
array([ 2., nan])

minimum: The smaller of two elements; NaN where one is NaN.
>>> ln.minimum([1.0, ln.nan], [2.0, 2.0]).compute()
array([ 1., nan])

modf: The part after the point and the part before it, as two arrays, both with the sign of `x`.
>>> ln.compute(*ln.modf([1.5, -2.25]))
(array([ 0.5 , -0.25]), array([ 1., -2.]))

multiply: Products of elements, as `x1 * x2`.
>>> ln.multiply([1, 2], [3, 4]).compute()
array([3, 8])

negative: Elements with the other sign, as `-x`.
>>> ln.negative([1, -2]).compute()
array([-1,  2])

nextafter: The next float after `x1` on the way to `x2`.
>>> (ln.nextafter([1.0], [2.0]) > 1).compute()
array([ True])

not_equal: Whether elements differ, as `x1 != x2`.
>>> ln.not_equal([1, 2], [1, 3]).compute()
array([False,  True])

positive: The elements as they are, as `+x`.
>>> ln.positive([1, -2]).compute()
array([ 1, -2])

power: `x1` to the power of `x2`, as `x1 ** x2`.
>>> ln.power([2, 3], 2).compute()
array([4, 9])

rad2deg: Angles in radians, as degrees.
>>> ln.rad2deg([0.0, ln.pi / 2]).compute()
array([ 0., 90.])

radians: Angles in degrees, as radians.
>>> ln.radians([0.0, 90.0]).compute()
array([0.        , 1.57079633])

reciprocal: `1 / x`; of integers the quotient is rounded towards zero.
>>> ln.reciprocal([2.0, 4.0]).compute()
array([0.5 , 0.25])

remainder: Remainders with the sign of the divisor, as `x1 % x2`.
>>> ln.remainder([7, -7], 3).compute()
array([1, 2])

right_shift: Bits of integers moved to the right, as `x1 >> x2`.
>>> ln.right_shift([8, 12], 2).compute()
array([2, 3])

rint: The nearest whole number; halves go to the even one.
>>> ln.rint([0.5, 1.5, 2.4]).compute()
array([0., 2., 2.])

sign: -1, 0 or 1 by the sign of each element.
>>> ln.sign([-2.0, 0.0, 3.0]).compute()
array([-1.,  0.,  1.])

signbit: Whether the bit of the sign is set: of negative numbers, and of -0.0.
>>> ln.signbit([-1.0, 0.0, -0.0]).compute()
array([ True, False,  True])

sin: Sines of angles in radians.
>>> ln.sin([0.0, 1.0]).compute()
array([0.        , 0.84147098])

sinh: Hyperbolic sines.
>>> ln.sinh([0.0, 1.0]).compute()
array([0.        , 1.17520119])

spacing: The distance to the next float away from zero.
>>> (ln.spacing([1.0]) == ln.finfo(float).eps).compute()
array([ True])

sqrt: Square roots, not negative; of negative numbers NaN.
>>> ln.sqrt([4.0, 2.0]).compute()
array([2.        , 1.41421356])

square: Squares, as `x * x`.
>>> ln.square([2, -3]).compute()
array([4, 9])

subtract: Differences, as `x1 - x2`.
>>> ln.subtract([5, 7], [1, 2]).compute()
array([4, 5])

tan: Tangents of angles in radians.
>>> ln.tan([0.0, 1.0]).compute()
array([0.        , 1.55740772])

tanh: Hyperbolic tangents.
>>> ln.tanh([0.0, 1.0]).compute()
array([0.        , 0.76159416])

trunc: Whole numbers without the part after the point, towards zero.
>>> ln.trunc([1.8, -1.8]).compute()
array([ 1., -1.])
"""
"""By NumPy's name: what it gives, an example, and what that shows."""

MEANINGS = {
    name: text for name, _, text in (each.partition(": ") for each in _MEANINGS.strip().split("\n\n"))
}

_OPERANDS = {
    1: "x : array_like\n    The elements.",
    2: "x1, x2 : array_like\n    The elements; shapes that differ are broadcast together.",
}
_OPTIONS = """\
out : Array or NumPy array, optional
    Where the result goes; it is returned.
where : array_like of bool, optional
    Where to compute; elsewhere `out` keeps its elements, and without `out` there are zeros.
dtype, casting : optional
    The type to compute in, and which casts are allowed, as for NumPy's function."""


def docstring(name: str, ufunc: np.ufunc) -> str:
    """The docstring of a function under one of its names.

    >>> print(docstring("abs", np.absolute).splitlines()[0])
    Absolute values; of complex numbers their distance from zero.
    """
    if ufunc.__name__ not in MEANINGS:  # of a NumPy newer than this text
        return f"NumPy's `{ufunc.__name__}`, element by element."
    summary, _, example = MEANINGS[ufunc.__name__].partition("\n")
    alias = "" if name == ufunc.__name__ else f"\n\nAnother name of `{ufunc.__name__}`."
    returned = "Array" if ufunc.nout == 1 else "tuple of two Arrays"
    example = example.replace(f"ln.{ufunc.__name__}(", f"ln.{name}(")
    imports = ">>> import linnet as ln\n" + (">>> import numpy as np\n" if "np." in example else "")
    return f"""{summary}{alias}

Parameters
----------
{_OPERANDS[ufunc.nin]}
{_OPTIONS}

Returns
-------
{returned}
    As NumPy's `{ufunc.__name__}` gives it, computed when its values are asked for.

Examples
--------
{imports}{example}
"""
