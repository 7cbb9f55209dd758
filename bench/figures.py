"""The figures of each contender and size; written to and read from JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.contenders import CONTENDERS, FLOOR, NAIVE, PYTHON

DIGITS = 4  # after the decimal point, of seconds


@dataclass
class Figures:
    """All measurements of one contender at one size: seconds of each, the highest peak memory."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    rows: int | None = None
    error: str | None = None

    def add(self, result: dict[str, Any]) -> None:
        if "error" in result:
            self.error = result["error"]
            return
        self.seconds.append(round(result["seconds"], DIGITS))
        self.cpu_seconds.append(round(result["cpu_seconds"], DIGITS))
        self.peak_bytes = max(self.peak_bytes, result["peak_bytes"])
        self.rows = result["rows"]

    @property
    def least(self) -> float | None:
        """The minimum, seconds; None if it failed or was not measured."""
        return min(self.seconds) if self.seconds and self.error is None else None


@dataclass
class SizeFigures:
    """All measurements at one size; `own_bytes` is the memory of the interpreter itself."""

    n_kernels: int
    export_bytes: int
    dict_bytes: int
    own_bytes: int
    contenders: dict[str, Figures]

    def seconds(self, name: str) -> float | None:
        return self.contenders[name].least if name in self.contenders else None

    def peak_bytes(self, name: str) -> int:
        """Peak memory above that of the interpreter with its modules."""
        return self.contenders[name].peak_bytes - self.own_bytes


@dataclass
class Run:
    """One run: the machine, and the figures of each size in ascending order."""

    machine: dict[str, Any]
    sizes: list[SizeFigures]

    def size(self, n_kernels: int) -> SizeFigures | None:
        return next((size for size in self.sizes if size.n_kernels == n_kernels), None)

    def seconds(self, name: str, n_kernels: int) -> tuple[float | None, bool]:
        """Seconds, and whether they are measured: a size too large for the contender is
        extrapolated from the largest measured one, in proportion to the kernels."""
        at = self.size(n_kernels)
        result = at.seconds(name) if at else None
        if result is not None:
            return result, True
        smaller = [
            (size.n_kernels, seconds)
            for size in self.sizes
            if size.n_kernels < n_kernels and (seconds := size.seconds(name)) is not None
        ]
        if not smaller or CONTENDERS[name].runs_on(n_kernels):
            return None, False
        largest, seconds = max(smaller)
        return seconds * n_kernels / largest, False

    def times_faster(self, name: str, than: str, n_kernels: int) -> tuple[float | None, bool]:
        """How many times as fast, and whether both were measured."""
        own, own_measured = self.seconds(name, n_kernels)
        other, measured = self.seconds(than, n_kernels)
        if not own or not other:
            return None, False
        return other / own, own_measured and measured

    def floors(self, name: str, n_kernels: int) -> float | None:
        """Seconds relative to those of the floor; below 1 if SQLite is bypassed."""
        times, measured = self.times_faster(FLOOR, name, n_kernels)
        return times if measured else None

    def more_floors(self, name: str, than: str, n_kernels: int) -> float | None:
        """How many floors it takes more than another contender."""
        own, other = self.floors(name, n_kernels), self.floors(than, n_kernels)
        return None if own is None or other is None else own - other

    def against_python(self, name: str, n_kernels: int) -> tuple[float | None, bool]:
        return self.times_faster(name, PYTHON[CONTENDERS[name].job], n_kernels)

    def against_naive(self, name: str, n_kernels: int) -> tuple[float | None, bool]:
        return self.times_faster(name, NAIVE, n_kernels)

    def growth(self, name: str, n_kernels: int) -> float | None:
        """The time per kernel, relative to that at a tenth of the size."""
        small, large = (self.size(n) for n in (n_kernels // 10, n_kernels))
        before, after = small and small.seconds(name), large and large.seconds(name)
        return after / before / 10 if before and after else None

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Run:
        read = json.loads(path.read_text(encoding="utf-8"))
        sizes = []
        for size in read["sizes"]:
            contenders = {name: Figures(**item) for name, item in size.pop("contenders").items()}
            sizes.append(SizeFigures(**size, contenders=contenders))
        return cls(read["machine"], sizes)
