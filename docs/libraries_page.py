"""Writes docs/libraries.md: which functions and estimators of other libraries work on arrays in tiles.

    python docs/libraries_page.py

Every entry is a call, made on NumPy arrays and on ours, in several tiles, and compared. An entry is
*lazy* if no engine ran during the call, *computed* if one did, and told with its error if it failed.
"""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy and scikit-learn look at it when they are imported

import ast
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np

import linnet as ln
from linnet.engines import Threads

PAGE = Path(__file__).with_name("libraries.md")

HEAD = """# Libraries on arrays: scikit-learn, SciPy, einops, opt_einsum

This page is written by `python docs/libraries_page.py`: it calls everything below on arrays in several
tiles and compares with NumPy; a test runs it again. Libraries reach arrays through the array API standard.
**lazy**: nothing was computed during the call. **computed**: the function looked at values, so tiles were
computed on the way; the result is an array again. SciPy and scikit-learn take arrays of the standard only
if the environment says `SCIPY_ARRAY_API=1` before they are imported, and scikit-learn with
`sklearn.config_context(array_api_dispatch=True)`. Functions that write into a slice and expect the whole
array to change give other values: slices are not views here.
"""

# ---- SciPy

UNARY = """
        cbrt cosdg cosm1 cotdg ellipk ellipkm1 entr erf erfc erfcx erfinv exp1 exp10 exp2 expi expit
        exprel gamma gammaln gammasgn i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e log_ndtr loggamma logit ndtr
        ndtri psi rgamma sinc sindg spence tandg y0 y1 zetac
    """
BINARY = """
        betaln binom boxcox boxcox1p chdtr chdtrc gammainc gammaincc gammainccinv gammaincinv huber
        inv_boxcox inv_boxcox1p kl_div pdtr pdtrc poch pseudo_huber rel_entr stdtr stdtrit xlog1py
        xlogy zeta
    """
TERNARY = "bdtr bdtrc betainc betaincc betaincinv fdtr fdtrc fdtri gdtr gdtrc hyp1f1 nbdtr nbdtrc radian"

CALLS = {
    "scipy.special": "logsumexp(x) softmax(x) log_softmax(x) multigammaln(x3,2)",
    "scipy.fft": """
        fft(x) ifft(c) rfft(x) irfft(c) hfft(c) ihfft(x) fftn(m) ifftn(m) fft2(m) ifft2(m) rfftn(m)
        rfft2(m) irfftn(m) irfft2(m) dct(x) idct(x) dst(x) idst(x) dctn(m) idctn(m) dstn(m) idstn(m)
        fftshift(x) ifftshift(x)
    """,
    "scipy.stats": """
        gmean(p) hmean(p) pmean(p,2) mode(k) tmean(x) tvar(x) tmin(x) tmax(x) tstd(x) tsem(x)
        moment(x,2) skew(x) kurtosis(x) describe(x) skewtest(x) kurtosistest(x) normaltest(x)
        jarque_bera(x) sem(x) zscore(x) gzscore(p) zmap(x,y) gstd(p) iqr(x) median_abs_deviation(x)
        trim_mean(x,0.1) f_oneway(x,y) pearsonr(x,y) ttest_1samp(x,0.1) ttest_ind(x,y)
        ttest_rel(x,y) chisquare(p) power_divergence(p) entropy(p) variation(p)
        differential_entropy(x) rankdata(x) lmoment(x) kstat(x) kstatvar(x) boxcox_llf(0.5,p)
        yeojohnson_llf(0.5,p) bartlett(x,y) levene(x,y) fligner(x,y) mood(x,y) ansari(x,y)
        wilcoxon(x,y) kruskal(x,y) mannwhitneyu(x,y) brunnermunzel(x,y) friedmanchisquare(x,y,p)
        circmean(p) circvar(p) circstd(p) directional_stats(m) combine_pvalues(u)
        false_discovery_control(u) epps_singleton_2samp(x,y) cramervonmises_2samp(x,y)
        alexandergovern(x,y) sigmaclip(x) chatterjeexi(x,y) spearmanrho(x,y) quantile(x,0.3)
    """,
    "scipy.ndimage": """
        gaussian_filter(m,1) uniform_filter(m,3) median_filter(m,3) sobel(m) laplace(m) prewitt(m)
        convolve1d(m,w) correlate1d(m,w) maximum_filter(m,3) minimum_filter(m,3) zoom(m,2)
        rotate(m,30) shift(m,1) binary_erosion(b) binary_dilation(b) binary_opening(b) label(b)
        center_of_mass(p2) grey_erosion(m,3) distance_transform_edt(b) spline_filter(m)
        percentile_filter(m,50,3) gaussian_laplace(m,1)
    """,
    "scipy.signal": """
        convolve(x,w) correlate(x,w) fftconvolve(x,w) oaconvolve(x,w) hilbert(x) detrend(x)
        medfilt(x) savgol_filter(x,5,2) wiener(x) resample(x,12) resample_poly(x,2,3) lfilter(w,w,x)
        filtfilt(w3,w3,x) convolve2d(m,m) correlate2d(m,m) upfirdn(w,x) deconvolve(x,w) cspline1d(x)
        order_filter(x,w1,1) hilbert2(m) vectorstrength(x,2.0) freqz(w,w) sosfilt(sos,x)
        sosfiltfilt(sos,x)
    """,
    "scipy.cluster.hierarchy": """
        linkage(m) single(m) ward(m) cophenet(z) inconsistent(z) maxdists(z) leaves_list(z)
    """,
    "scipy.cluster.vq": "whiten(m) vq(m,m)",
    "scipy.integrate": "trapezoid(x) cumulative_trapezoid(x) cumulative_simpson(x) romb(r)",
    "scipy.linalg": "block_diag(m,m) orthogonal_procrustes(m,m)",
    "scipy.optimize": "rosen(x) rosen_der(x) rosen_hess(x) rosen_hess_prod(x,y)",
    "scipy.constants": "convert_temperature(x,'Celsius','Kelvin') lambda2nu(p) nu2lambda(p)",
    "scipy.interpolate": """
        CubicSpline(s,x)(s) PchipInterpolator(s,x)(s) Akima1DInterpolator(s,x)(s)
        make_interp_spline(s,x)(s) BSpline(t,x,3)(s)
    """,
}
"""Functions by module, with arguments from `samples`."""


def samples() -> dict[str, Any]:
    """Arrays by name: some in one axis, matrices, positive ones, integers, booleans."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=24), rng.normal(size=24)
    m = rng.normal(size=(7, 6))
    s = np.arange(24.0)
    from scipy.cluster.hierarchy import linkage
    from scipy.signal import butter

    return {
        "x": x, "y": y, "m": m, "s": s, "c": np.fft.fft(x), "p": np.abs(x) + 0.5, "k": rng.integers(0, 4, 24),
        "u": rng.uniform(0.01, 0.99, 24), "b": m > 0, "w": np.array([1.0, 0.5, 0.25]), "p2": np.abs(m),
        "w1": np.array([1.0, 1.0, 1.0]), "w3": np.array([1.0, 0.2]), "r": rng.normal(size=17),
        "t": np.r_[[0.0] * 4, np.arange(2.0, 22.0), [23.0] * 4], "z": linkage(m),
        "sos": butter(4, 0.3, output="sos"), "v": rng.uniform(0.1, 0.9, 24), "v2": rng.uniform(0.1, 0.9, 24),
        "n": rng.integers(1, 9, 24).astype(float), "x3": x + 3,
    }  # fmt: skip


def tiled(values: Any) -> Any:
    """An array of ours in several tiles, not computed yet."""
    return ln.map_blocks(np.copy, ln.asarray(values, chunks=5 if values.ndim == 1 else 4), dtype=values.dtype)


def leaves(result: Any) -> Iterable[Any]:
    """Arrays in a result: itself, or what a tuple or a result object holds."""
    if isinstance(result, tuple | list):
        for each in result:
            yield from leaves(each)
    elif hasattr(result, "_fields") or (hasattr(result, "__dict__") and hasattr(result, "statistic")):
        yield from leaves([result.statistic, result.pvalue])
    else:
        yield result


class Runs:
    """Whether an engine runs something while it is entered."""

    def __enter__(self) -> Runs:
        self.count, self._run = 0, Threads.run

        def counted(engine: Any, *args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return self._run(engine, *args, **kwargs)

        Threads.run = counted  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        Threads.run = self._run  # type: ignore[method-assign]


def tried(function: Callable[[dict[str, Any]], Any], plain: dict[str, Any]) -> str:
    """What becomes of a call: lazy, computed, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = list(leaves(function(plain)))
        try:
            with Runs() as runs:
                found = list(leaves(function({name: tiled(each) for name, each in plain.items()})))
            for one, other in zip(found, expected, strict=True):
                values = np.asarray(one)
                if values.dtype.kind in "biufc":
                    np.testing.assert_allclose(values, other, rtol=1e-6, atol=1e-9)
        except AssertionError:
            return "gives other values"
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}".strip().splitlines()[0]
            return text if len(text) <= 100 else text[:97] + "..."
    ours = any(isinstance(each, ln.Array) for each in found)
    return "lazy" if ours and not runs.count else "computed"


def scipy_rows() -> dict[str, dict[str, str]]:
    """For each module its functions, and what becomes of them."""
    from importlib import import_module

    plain = samples()
    rows: dict[str, dict[str, str]] = {}
    calls = {module: text.split() for module, text in CALLS.items()}
    calls["scipy.special"] += [f"{name}(v)" for name in UNARY.split()]
    calls["scipy.special"] += [f"{name}(v,v2)" for name in BINARY.split()]
    calls["scipy.special"] += [f"{name}(n,n,v)" for name in TERNARY.split()]
    for module, texts in calls.items():
        space = vars(import_module(module))
        found: dict[str, str] = {}
        for text in texts:
            call = ast.parse(text, mode="eval").body
            names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
            used = {name: each for name, each in plain.items() if name in names}
            found[text.partition("(")[0]] = tried(partial(_result, call, space), used)
        if found:
            rows[module] = dict(sorted(found.items()))
    return rows


def _result(node: ast.expr, space: dict[str, Any], values: dict[str, Any]) -> Any:
    """What a call gives: functions are those of a module, arguments are values, numbers and words."""
    if isinstance(node, ast.Call):
        function = _result(node.func, space, values)
        return function(*(_result(each, space, values) for each in node.args))
    if isinstance(node, ast.Name):
        return values[node.id] if node.id in values else space[node.id]
    return ast.literal_eval(node)


# ---- scikit-learn


def estimators() -> dict[str, str]:
    """Every estimator tagged for the standard, and whether scikit-learn's own check passes."""
    from sklearn.utils import all_estimators, get_tags
    from sklearn.utils._test_common.instance_generator import _construct_instances
    from sklearn.utils.estimator_checks import check_array_api_input

    found: dict[str, str] = {}
    for name, kind in all_estimators():
        for estimator in list(_instances(kind, _construct_instances))[:1]:
            if not get_tags(estimator).array_api_support:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    if name == "LabelEncoder":  # it has no X, which the check gives it
                        _labels_encoded(estimator)
                    else:
                        check_array_api_input(name, estimator, "linnet", dtype_name="float64")
                    found[name] = "passes"
                except Exception as problem:
                    found[name] = f"{type(problem).__name__}: {problem}".splitlines()[0]
    return found


def _instances(kind: Any, construct: Any) -> Iterable[Any]:
    try:
        return list(construct(kind))
    except (TypeError, SkipTest):  # a class that only others are made of
        return []


def _labels_encoded(encoder: Any) -> None:
    from sklearn import config_context

    labels = np.array([3, 1, 1, 7])
    with config_context(array_api_dispatch=True):
        codes = encoder.fit_transform(ln.asarray(labels))
        back = encoder.inverse_transform(codes)
    assert isinstance(codes, ln.Array)
    np.testing.assert_array_equal(codes, [1, 0, 0, 2])
    np.testing.assert_array_equal(back, labels)


# ---- einops, opt_einsum


def einops_rows() -> dict[str, str]:
    """Every operation of einops for arrays of the standard."""
    from einops import array_api as einops

    x = np.arange(24.0).reshape(2, 3, 4)
    calls: dict[str, Callable[[dict[str, Any]], Any]] = {
        "rearrange": lambda a: einops.rearrange(a["x"], "a b c -> c (a b)"),
        "reduce": lambda a: einops.reduce(a["x"], "a b (c d) -> a d", "mean", d=2),
        "repeat": lambda a: einops.repeat(a["x"], "a b c -> a (b r) c", r=2),
        "pack": lambda a: einops.pack([a["x"], a["x"]], "a * c")[0],
        "unpack": lambda a: einops.unpack(a["x"], [(1,), (2,)], "a * c"),
        "asnumpy": lambda a: einops.asnumpy(a["x"]),
    }
    return {name: tried(call, {"x": x}) for name, call in calls.items()}


def opt_einsum_rows() -> dict[str, str]:
    """What opt_einsum does with arrays."""
    import opt_einsum

    m = np.arange(12.0).reshape(3, 4)
    calls: dict[str, Callable[[dict[str, Any]], Any]] = {
        "contract": lambda a: opt_einsum.contract("ij,kj,kl->il", a["m"], a["m"], a["m"]),
        "contract_expression": lambda a: opt_einsum.contract_expression("ij,kj->ik", (3, 4), (3, 4))(
            a["m"], a["m"]
        ),
    }
    return {name: tried(call, {"m": m}) for name, call in calls.items()}


# ---- the page


def listed(found: dict[str, str], state: str) -> str:
    """The names in a state, one after another."""
    return " ".join(f"`{name}`" for name, each in found.items() if each == state)


def section(title: str, found: dict[str, str]) -> str:
    """A part of the page: names by state, and errors with their names."""
    good = ("passes", "lazy", "computed")
    count = sum(each in good for each in found.values())
    lines = [f"### {title}: {count} of {len(found)}", ""]
    lines += [f"- **{state}**: {listed(found, state)}" for state in good if state in found.values()]
    failed = {name: each for name, each in found.items() if each not in good}
    lines += [f"- `{name}`: {text}" for name, text in failed.items()]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    import scipy
    import sklearn

    parts = [HEAD]
    parts.append(f"## scikit-learn {sklearn.__version__}\n")
    parts.append("Estimators tagged `array_api_support`, under scikit-learn's own `check_array_api_input`.\n")
    parts.append(section("Estimators", estimators()))
    parts.append(f"## SciPy {scipy.__version__}\n")
    parts += [section(module, found) for module, found in scipy_rows().items()]
    parts.append("## einops and opt_einsum\n")
    parts.append("Arrays of the standard go through `einops.array_api`; its `einsum` is `ln.einsum`.\n")
    parts.append(section("einops.array_api", einops_rows()))
    parts.append(section("opt_einsum", opt_einsum_rows()))
    return "\n".join(parts)


if __name__ == "__main__":
    made = page()
    if "--check" in sys.argv and made != PAGE.read_text(encoding="utf-8"):
        print(made)
        sys.exit(
            "docs/libraries.md is not what docs/libraries_page.py writes; run it, and look at the difference"
        )
    PAGE.write_text(made, encoding="utf-8")
