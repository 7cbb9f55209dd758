"""The targets of the project, applied to the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.contenders import (
    DIFF,
    GRAPH,
    GROUPINGS,
    LAYERS,
    OPEN,
    OPEN_ONE_CORE,
    OPEN_SQLITE,
    OVERLAP,
    PARSE,
    PERFETTO,
    PROF,
    PROF_DICT,
    REPLAYS,
    REPORT,
    ROOFLINE,
    STATS,
    SUMMARIES,
    SUMMARY,
    TIME_LINE,
    WALK,
    WHATIFS,
)
from bench.figures import Run
from bench.replays import N_REPLAYS

TARGET_SIZE, LARGE = 10**6, 10**7
FLOORS_AT_MOST = {WALK: 0.3, OPEN: 0.6, OPEN_SQLITE: 1.5, PARSE: 3.0, PROF: 4.0, PROF_DICT: 6.0}
PRODUCT = (OPEN, PARSE, PROF, PROF_DICT)
# Floors and bytes per kernel that reports take more than `open`.
MORE_FLOORS_AT_MOST = {SUMMARY: 0.3, LAYERS: 0.3, ROOFLINE: 0.3, STATS: 1.0}
# Reports on the time line: 0.5 for the report, 0.5 for reading the calls of the host.
MORE_FLOORS_AT_MOST |= {name: 0.5 if name == OVERLAP else 1.0 for name in TIME_LINE}
MORE_FLOORS_AT_MOST |= {REPORT: 1.5}  # all reports and charts
MORE_BYTES_AT_MOST = 60
DIFF_MORE_FLOORS_AT_MOST = 0.5  # than to open two exports
GRAPH_MORE_FLOORS_AT_MOST = 0.7 + 0.5  # 0.5 for reading the calls of the host
REPLAY_FLOORS_AT_MOST = 0.2  # each
CHANGES_FLOORS_AT_MOST = 10  # 100 changes
GROUPING_FLOORS_AT_MOST = 0.1  # each, on an open profile
EVENTS_PER_KERNEL = 6.87  # slices and flows that `export perfetto` writes of the generated export
EVENTS_A_SECOND_AT_LEAST = 1.5e6
NAIVE_AT_LEAST = {OPEN: 80, PARSE: 40}
PYTHON_AT_LEAST = {OPEN: 25, PARSE: 25}
SECOND_CORE_AT_LEAST = 1.4
MEGABYTES_A_SECOND_AT_LEAST = 1000
BYTES_PER_KERNEL_AT_MOST = 400
GROWTH_AT_MOST = 1.2
LARGE_MEGABYTES_AT_MOST = 3000


@dataclass(frozen=True)
class Target:
    """A limit on a figure of a contender; `value` is None if not measured."""

    contender: str
    figure: str
    value: float | None
    limit: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        result = "not measured" if self.value is None else f"{self.value:.3g}"
        return f"{self.figure} {result} ({'>=' if self.at_least else '<='} {self.limit:g})"


def targets(run: Run) -> Iterator[Target]:
    """The targets at the measured sizes."""
    if run.size(TARGET_SIZE) is not None:
        yield from _speed(run)
        yield from _memory(run)
        yield from _reports(run)
        yield from _replays(run)
    if run.size(LARGE) is not None:
        yield from _scaling(run)


def _speed(run: Run) -> Iterator[Target]:
    for name, limit in FLOORS_AT_MOST.items():
        yield Target(name, "floors", run.floors(name, TARGET_SIZE), limit)
    for name, limit in PYTHON_AT_LEAST.items():
        yield Target(name, "x python", run.against_python(name, TARGET_SIZE)[0], limit, True)
    for name, limit in NAIVE_AT_LEAST.items():
        yield Target(name, "x naive", run.against_naive(name, TARGET_SIZE)[0], limit, True)
    cores, _ = run.times_faster(OPEN, OPEN_ONE_CORE, TARGET_SIZE)
    yield Target(OPEN, "x one core", cores, SECOND_CORE_AT_LEAST, True)
    size, (seconds, _) = run.size(TARGET_SIZE), run.seconds(OPEN, TARGET_SIZE)
    speed = size.export_bytes / seconds / 1e6 if size and seconds else None
    yield Target(OPEN, "MB/s", speed, MEGABYTES_A_SECOND_AT_LEAST, True)


def _memory(run: Run) -> Iterator[Target]:
    size = run.size(TARGET_SIZE)
    for name in PRODUCT:
        memory = size.peak_bytes(name) / TARGET_SIZE if size and size.seconds(name) else None
        yield Target(name, "bytes/kernel", memory, BYTES_PER_KERNEL_AT_MOST)


def _reports(run: Run) -> Iterator[Target]:
    size = run.size(TARGET_SIZE)
    for name, limit in MORE_FLOORS_AT_MOST.items():
        yield Target(name, "floors over open", run.more_floors(name, OPEN, TARGET_SIZE), limit)
    for name in (SUMMARY, LAYERS, ROOFLINE):
        known = size is not None and size.seconds(name) and size.seconds(OPEN)
        more = size.peak_bytes(name) - size.peak_bytes(OPEN) if size and known else None
        memory = None if more is None else more / TARGET_SIZE
        yield Target(name, "bytes/kernel over open", memory, MORE_BYTES_AT_MOST)
    both, opened = run.floors(DIFF, TARGET_SIZE), run.floors(OPEN, TARGET_SIZE)
    compared = None if both is None or opened is None else both - 2 * opened
    yield Target(DIFF, "floors over open of both", compared, DIFF_MORE_FLOORS_AT_MOST)
    exported, opened = (run.seconds(name, TARGET_SIZE)[0] for name in (PERFETTO, OPEN))
    speed = EVENTS_PER_KERNEL * TARGET_SIZE / (exported - opened) if exported and opened else None
    yield Target(PERFETTO, "events/s over open", speed, EVENTS_A_SECOND_AT_LEAST, True)
    further = run.more_floors(SUMMARIES, SUMMARY, TARGET_SIZE)
    each = None if further is None else further / len(GROUPINGS)
    yield Target(SUMMARIES, "floors a grouping", each, GROUPING_FLOORS_AT_MOST)


def _replays(run: Run) -> Iterator[Target]:
    built = run.more_floors(GRAPH, OPEN, TARGET_SIZE)
    yield Target(GRAPH, "floors over open", built, GRAPH_MORE_FLOORS_AT_MOST)
    all_of_them = run.more_floors(REPLAYS, GRAPH, TARGET_SIZE)
    each = None if all_of_them is None else all_of_them / N_REPLAYS
    yield Target(REPLAYS, "floors a replay", each, REPLAY_FLOORS_AT_MOST)
    changed = run.more_floors(WHATIFS, GRAPH, TARGET_SIZE)
    yield Target(WHATIFS, "floors over the graph", changed, CHANGES_FLOORS_AT_MOST)


def _scaling(run: Run) -> Iterator[Target]:
    size = run.size(LARGE)
    for name in PRODUCT:
        yield Target(name, "ns/kernel, 10^7 : 10^6", run.growth(name, LARGE), GROWTH_AT_MOST)
        memory = size.contenders[name].peak_bytes / 1e6 if size and size.seconds(name) else None
        yield Target(name, "MB at 10^7", memory, LARGE_MEGABYTES_AT_MOST)
