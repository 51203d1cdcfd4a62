"""A climatology: forty years of daily temperatures on a map, their yearly cycle, trend and extremes.

The data are made up, 117 MB of them, and never all there at once: every number below comes from tiles
that are drawn, used and dropped within a budget of 60 MB.

python examples/climatology.py
"""

import numpy as np

import linnet as ln

YEARS, DAYS, ROWS, COLUMNS = 40, 365, 20, 50
WARMING = 0.03  # degrees a year


def temperatures(seed: int):
    """Daily temperatures: colder towards the poles, a yearly cycle, a trend, and weather."""
    weather = ln.random.default_rng(seed).normal(0, 3, (YEARS, DAYS, ROWS, COLUMNS), chunks=(4, -1, -1, -1))
    latitude = np.linspace(-80, 80, ROWS)[:, None]
    day = np.arange(DAYS)[:, None, None]
    year = np.arange(YEARS)[:, None, None, None]
    cycle = -10 * np.sin(np.radians(latitude)) * np.cos(2 * np.pi * day / DAYS)
    return 25 - 0.4 * abs(latitude) + cycle + WARMING * year + weather


def main() -> None:
    data = temperatures(0)
    print(f"{data!r}: {data.nbytes / 1e6:.0f} MB")
    with ln.init(memory="60 MB"):
        # One program for all of them: each tile is drawn once and used by all.
        normal, yearly, hottest = ln.compute(data.mean(axis=0), data.mean(axis=(1, 2, 3)), data.max())
        anomaly = data - normal
        warm = np.mean(anomaly > 6, axis=(1, 2, 3)).compute()
    slope = np.polyfit(np.arange(YEARS), yearly, 1)[0]
    print(f"mean {yearly.mean():.2f}, hottest day {hottest:.1f} degrees")
    print(f"warming found: {slope:.4f} degrees a year (put in: {WARMING})")
    early, late = warm[:10].mean(), warm[-10:].mean()
    print(f"days 6 degrees above normal: {early:.2%} in the first ten years, {late:.2%} in the last")
    assert normal.shape == (DAYS, ROWS, COLUMNS)
    assert abs(slope - WARMING) < 1e-3
    assert late > early


if __name__ == "__main__":
    main()
