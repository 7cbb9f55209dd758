"""Figures of a run -> the tables that `bench.run` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.contenders import FLOOR

# What the project asks of sizes from TARGET_SIZE on: at most so many floors, bytes a kernel, and
# time a kernel against that at a tenth of the size.
TARGET_SIZE = 1_000_000
FLOORS_AT_MOST = {
    "open": 2.0,
    "parse": 5.0,
    "prof --csv from trace": 4.0,
    "prof --csv from dict": 6.0,
}
BYTES_PER_KERNEL_AT_MOST = 400
GROWTH_AT_MOST = 1.2
HEADER = (
    f"{'contender':<22} {'min s':>9} {'median s':>9} {'ns/kernel':>10} {'CPU':>6} {'floors':>7} "
    f"{'at most':>7} {'B/kernel':>9} {'at most':>7}"
)


@dataclass
class Figures:
    """All measurements of one contender at one size: seconds of each, bytes of the highest."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    error: str | None = None

    def add(self, result: dict[str, Any]) -> None:
        if "error" in result:
            self.error = result["error"]
            return
        self.seconds.append(result["seconds"])
        self.cpu_seconds.append(result["cpu_seconds"])
        self.peak_bytes = max(self.peak_bytes, result["peak_bytes"])


@dataclass
class SizeFigures:
    """All measurements at one size; the interpreter's own memory is in `own_bytes`."""

    n_kernels: int
    export_bytes: int
    dict_bytes: int
    own_bytes: int
    contenders: dict[str, Figures]

    def nanoseconds_per_kernel(self, name: str) -> float | None:
        figures = self.contenders[name]
        if figures.error or not figures.seconds:
            return None
        return 1e9 * min(figures.seconds) / self.n_kernels


def size_table(size: SizeFigures) -> str:
    """One size: a line for each contender, its error in place of figures where it failed."""
    title = (
        f"{size.n_kernels} kernels: export {size.export_bytes / 1e6:.1f} MB, "
        f"dict file {size.dict_bytes / 1e6:.1f} MB, "
        f"interpreter's own memory {size.own_bytes / 1e6:.1f} MB"
    )
    floor = size.nanoseconds_per_kernel(FLOOR)
    lines = [contender_line(name, size, floor) for name in size.contenders]
    return "\n".join([title, HEADER, *lines])


def contender_line(name: str, size: SizeFigures, floor: float | None) -> str:
    figures = size.contenders[name]
    time = size.nanoseconds_per_kernel(name)
    if time is None:
        return f"{name:<22} {figures.error or 'not measured'}"
    cpu_time = 1e9 * min(figures.cpu_seconds) / size.n_kernels
    floors = f"{time / floor:.2f}" if floor else "na"
    memory = (figures.peak_bytes - size.own_bytes) / size.n_kernels
    floors_at_most = memory_at_most = "-"
    if size.n_kernels >= TARGET_SIZE and name in FLOORS_AT_MOST:
        floors_at_most = f"{FLOORS_AT_MOST[name]:.0f}"
        memory_at_most = f"{BYTES_PER_KERNEL_AT_MOST}"
    return (
        f"{name:<22} {min(figures.seconds):>9.3f} {median(figures.seconds):>9.3f} {time:>10.0f} "
        f"{cpu_time:>6.0f} {floors:>7} {floors_at_most:>7} {memory:>9.0f} {memory_at_most:>7}"
    )


def growth_table(sizes: list[SizeFigures]) -> str:
    """Time a kernel at each size against that at the size a tenth of it, where both are there."""
    by_size = {size.n_kernels: size for size in sizes}
    lines = [
        growth_line(by_size[size.n_kernels // 10], size)
        for size in sizes
        if size.n_kernels // 10 in by_size
    ]
    if not lines:
        return ""
    limit = f"at most {GROWTH_AT_MOST} above {TARGET_SIZE}"
    return "\n".join([f"time a kernel, against a tenth of the kernels ({limit})", *lines])


def growth_line(small: SizeFigures, large: SizeFigures) -> str:
    parts = []
    for name in large.contenders:
        before, after = small.nanoseconds_per_kernel(name), large.nanoseconds_per_kernel(name)
        parts.append(f"{name} {after / before:.2f}" if before and after else f"{name} na")
    return f"{large.n_kernels:>9}: {', '.join(parts)}"
