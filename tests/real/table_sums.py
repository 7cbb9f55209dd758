"""Sums over the rows of `fastprof prof`, without cells: what the tables of reports must show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np

import fastprof
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.keys import key_of
from fastprof.model.numbers import without_numbers

Sums = dict[Any, tuple[int, int]]

# Keys that a row of `prof` tells; the others are those of its kernel alone.
OF_ROW = {
    "op": lambda row: row["op"],
    "dir": lambda row: row["dir"],
    "kernel": lambda row: row["kernel"],
    "layer": lambda row: ":".join(row["layer"]) or None,
    "layer-depth-1": lambda row: ":".join(row["layer"][:1]) or None,
    "stream": lambda row: row["stream"],
    "device": lambda row: row["device"],
    "process": lambda row: row.get("pid"),
    "thread": lambda row: row.get("tid"),
    "step": lambda row: row.get("step"),
    "file": lambda row: row["line"] and row["line"].rpartition(":")[0],
    "range": lambda row: ":".join(without_numbers(each) for each in row.get("ranges", ())) or None,
    "kind": lambda row: row["class"],
    "phase": lambda row: (
        "copy" if row["kind"] in ("memcpy", "memset") or row["phase"] == "data" else row["phase"]
    ),
}
KEYS = (*KEY_NAMES, "layer-depth-1")
ONLY_OF_TRACES = ("phase", "file")  # dict lines and odd file names: of the kernel alone


class Rows:
    """The rows of a profile, by any key."""

    def __init__(self, profile: fastprof.Profile) -> None:
        self.profile = profile
        self.rows = list(profile.rows())
        self.time = [row["sil"] or 0 for row in self.rows]
        self.total = sum(self.time)
        self._values: dict[str, list[Any]] = {}

    def values(self, name: str) -> list[Any]:
        """The value of a key for each row."""
        if name not in self._values:
            is_told = name in OF_ROW and name not in ONLY_OF_TRACES
            self._values[name] = (
                [OF_ROW[name](row) for row in self.rows]
                if is_told
                else key_of(self.profile, name).array().tolist()
            )
        return self._values[name]

    def sums(self, by: Sequence[str], wanted: Iterable[bool] | None = None) -> Sums:
        """Number and GPU time of the rows of each combination of keys."""
        keys: Iterable[Any] = zip(*map(self.values, by), strict=True)
        times: Iterable[int] = self.time
        if wanted is not None:
            flags = list(wanted)
            keys, times = compress(keys, flags), compress(times, flags)
        result: dict[Any, list[int]] = defaultdict(list)
        for key, time in zip(keys, times, strict=True):
            result[key].append(time)
        return {key: (len(own), sum(own)) for key, own in result.items()}


def sums_of(table: fastprof.Table, by: Sequence[str], time: str = "gpu_ns") -> Sums:
    """Number and GPU time of each row of a table."""
    rows = list(table.rows())
    result = {tuple(row[name] for name in by): (row["kernels"], row[time]) for row in rows}
    assert len(result) == len(rows), by
    return result


def windows(profile: fastprof.Profile) -> tuple[np.ndarray, int]:
    """Whether each kernel is in a counted step; and the number of counted steps times GPUs."""
    steps = profile.find_steps()
    of_kernel = steps.of_kernel
    counted = np.append(steps.is_counted, False)[of_kernel]
    if steps.source == "none":
        return np.zeros(len(profile), bool), 0
    gpus = set(zip(key_of(profile, "process").array(), key_of(profile, "device").array(),
                   strict=True))  # fmt: skip
    used = set(of_kernel[counted].tolist())
    n = sum(steps.pid[step] in (pid, -1) or pid is None for step in used for pid, _ in gpus)
    return counted, n
