"""What the project asks of a run -> for each demand what was measured, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.contenders import OPEN, OPEN_ONE_CORE, OPEN_SQLITE, PARSE, WALK
from bench.figures import Run

TARGET_SIZE, LARGE = 10**6, 10**7
FLOORS_AT_MOST = {
    WALK: 0.3,
    OPEN: 0.6,
    OPEN_SQLITE: 1.5,
    PARSE: 5.0,
    "prof --csv from trace": 4.0,
    "prof --csv from dict": 6.0,
}
WHOLE = (OPEN, PARSE, "prof --csv from trace", "prof --csv from dict")
NAIVE_AT_LEAST = {OPEN: 80, PARSE: 40}
PYTHON_AT_LEAST = {OPEN: 25, PARSE: 25}
SECOND_CORE_AT_LEAST = 1.4
BYTES_A_SECOND_AT_LEAST = 1e9
BYTES_PER_KERNEL_AT_MOST = 400
GROWTH_AT_MOST = 1.2
LARGE_BYTES_AT_MOST = 3 * 10**9


@dataclass(frozen=True)
class Target:
    """A demand; `value` is None where it was not measured, `is_estimate` where extrapolated."""

    text: str
    value: float | None
    limit: float
    at_least: bool = False
    is_estimate: bool = False

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        holds = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "holds" if holds else "DOES NOT HOLD"


def targets(run: Run) -> Iterator[Target]:
    """The demands on the sizes from TARGET_SIZE on that were measured."""
    size = run.size(TARGET_SIZE)
    if size is not None:
        for name, limit in FLOORS_AT_MOST.items():
            yield Target(f"{name}: floors", run.floors(name, TARGET_SIZE), limit)
        for name, limit in NAIVE_AT_LEAST.items():
            times, measured = run.against_naive(name, TARGET_SIZE)
            yield Target(f"{name}: times the naive way", times, limit, True, not measured)
        for name, limit in PYTHON_AT_LEAST.items():
            times, measured = run.against_python(name, TARGET_SIZE)
            yield Target(f"{name}: times the Python", times, limit, True, not measured)
        cores, _ = run.times_faster(OPEN, OPEN_ONE_CORE, TARGET_SIZE)
        yield Target("open: times open on one core", cores, SECOND_CORE_AT_LEAST, at_least=True)
        whole = size.seconds(OPEN)
        speed = size.export_bytes / whole if whole else None
        text = f"{OPEN}: bytes of export a second"
        yield Target(text, speed, BYTES_A_SECOND_AT_LEAST, at_least=True)
        for name in WHOLE:
            memory = size.peak_bytes(name) / TARGET_SIZE if size.seconds(name) else None
            yield Target(f"{name}: peak bytes a kernel", memory, BYTES_PER_KERNEL_AT_MOST)
    large = run.size(LARGE)
    if large is not None:
        for name in WHOLE:
            yield Target(
                f"{name}: time a kernel, 10^7 to 10^6", run.growth(name, LARGE), GROWTH_AT_MOST
            )
        for name in WHOLE:
            memory = large.contenders[name].peak_bytes if large.seconds(name) else None
            yield Target(f"{name}: peak bytes at 10^7", memory, LARGE_BYTES_AT_MOST)
