"""One program on two GPUs: the time of its operators on the second, and as `whatif --on` says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import fastprof

Key = tuple[str, str, str]
BY = ["op", "shape", "dir"]


class Operator(NamedTuple):
    """An operator with its shapes on both GPUs.

    Parameters
    ----------
    time : of all its calls on the first GPU, ns
    ratio : of the time of a call on the second GPU to that on the first
    low, high : the same as predicted
    """

    key: Key
    time: float
    ratio: float
    low: float
    high: float

    @property
    def is_inside(self) -> bool:
        return self.low <= self.ratio <= self.high


class Comparison(NamedTuple):
    """Operators of both GPUs, weighted by their time on the first.

    Parameters
    ----------
    inside : share of the time whose measured ratio lies in the interval
    rows_inside : share of the operators
    width : median of the longest by the shortest time
    wide : share of the time with an interval wider than a factor of two
    ratio, low, high : of all these operators together, measured and predicted
    middle : typical factor by which the geometric middle of an interval is off
    """

    n: int
    inside: float
    rows_inside: float
    width: float
    wide: float
    ratio: float
    low: float
    high: float
    middle: float


def operators(
    first: fastprof.Profile,
    second: fastprof.Profile,
    on: str,
    same: Callable[[Key], Key] = lambda key: key,
    batches: float = 1.0,
) -> Iterator[Operator]:
    """The operators that both run.

    same : the key by which they are compared
    batches : the time of a call of the second counts so many times
    """
    measured = {same(key): ns / n for key, (ns, n) in calls(second).items()}
    of_first = calls(first)
    for row in first.whatif(on=on, by=BY).rows():
        key = (row["op"], row["shape"], row["dir"])
        known = measured.get(same(key))
        if (
            None in key
            or "['na']" in str(key[1])
            or not known
            or not row["gpu_ns"]
            or key not in of_first
        ):
            continue
        ns, n = of_first[key]
        low, high = (row[name] / row["gpu_ns"] for name in ("low_ns", "high_ns"))
        yield Operator(key, ns, known * batches * n / ns, low, high)


def calls(profile: fastprof.Profile) -> dict[Key, tuple[int, int]]:
    """GPU time and number of the calls of each operator with shapes, without communication."""
    rows = profile.roofline(by=BY).rows()
    result: dict[Key, tuple[int, int]] = {}
    for row in rows:
        if row["gpu_ns"] and row["calls"] and not str(row["op"]).startswith("nccl:"):
            result[row["op"], row["shape"], row["dir"]] = row["gpu_ns"], row["calls"]
    return result


def compared(found: list[Operator]) -> Comparison:
    time, ratio, low, high = (
        np.array([getattr(each, name) for each in found])
        for name in ("time", "ratio", "low", "high")
    )
    inside = np.array([each.is_inside for each in found])
    width, total = high / low, time.sum()
    order = np.argsort(width)
    half = np.searchsorted(np.cumsum(time[order]), total / 2)
    off = np.abs(np.log(ratio / np.sqrt(low * high)))
    return Comparison(
        len(found),
        float((time * inside).sum() / total),
        float(inside.mean()),
        float(width[order][half]),
        float((time * (width > 2)).sum() / total),
        *(float((time * each).sum() / total) for each in (ratio, low, high)),
        float(np.exp((time * off).sum() / total)),
    )


def per_image(key: Key) -> Key:
    """Of a convolutional network, the key of an operator without the batch size and with the shape
    of convolutions as old traces record it, without padding, stride and dilation."""
    op, shape, direction = key
    shape = re.sub(r"(\bN=|^\[)(32|64),", r"\1batch,", str(shape))
    return op, re.sub(r"ph=.*,g=", "g=", shape), direction


def of_batches(found: list[Operator]) -> list[Operator]:
    """Those whose work grows with the batch."""
    return [each for each in found if "batch" in per_image(each.key)[1]]


def line(names: tuple[str, str], found: Comparison) -> str:
    """The row of the table in docs/replay.md."""
    values: list[Any] = [
        found.n, f"{found.inside:.0%}", f"{found.rows_inside:.0%}", f"{found.width:.1f}",
        f"{found.wide:.0%}", f"{found.ratio:.2f}", f"{found.low:.2f} to {found.high:.2f}",
        f"{found.middle:.2f}",
    ]  # fmt: skip
    return " | ".join(["", *names, *map(str, values), ""]).strip().replace("%", " %")
