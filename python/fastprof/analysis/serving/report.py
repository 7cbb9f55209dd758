"""`serving`: what a serving engine's iterations do, by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.grouping import Floats64, numbers
from fastprof.analysis.idle.gaps import gaps_of_steps
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.serving.columns import IDLE, STAGES
from fastprof.analysis.serving.host import BEFORE, INSIDE, by_work
from fastprof.analysis.serving.tokens import between_tokens
from fastprof.analysis.steps.windows import Windows, times_of, windows_of
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.serving.names import INEXACT, SAMPLING, Iteration, iteration_of
from fastprof.profile.steps.kernel_steps import StepsOfKernels

PARTS: Final = ("attention", "weights", "communication", "sampling", "other")
_PART_OF_KIND: Final = {"attention": 0, "gemm": 1, "communication": 2}
_SAMPLING, _OTHER = 3, 4
SOURCE: Final = "iteration"
_MENTIONED: Final = 0.001  # share of the wall time from which idle time is told
_MOST_CAUSES: Final = 3
_TELLS: Final = 0.1  # share of the GPU time of known bytes from which the memory's share is told


def serving(
    profile: ProfileData,
    idle: bool = False,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """A row per stage of the iterations of a serving engine. See docs/reports.md.

    `facts` has the time between tokens.

    Parameters
    ----------
    idle : rows are instead the causes of idle time before and inside iterations
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        A GPU or figure is unknown.
    BadInputError
        The file has changed since it was read.
    """
    devices = devices_with(profile, gpu, peak, bandwidth)
    work = serving_work(profile)
    if isinstance(work, str):
        return _empty(work, IDLE if idle else STAGES)
    gpus = gpu_names(profile.about, profile.column("device"))
    causes, between = _idle(work), between_tokens(work.windows, work.told)
    stages = _stages(work, devices)
    facts = {"between_tokens": between.facts(), "engine": profile.contents.program.name or None}
    lead = [", ".join(filter(None, [gpus, work.steps.description]))]
    lead += [*lines_of(stages), between.text(), *_idle_lines(causes), ""]
    if idle:
        return replace(causes, lead=tuple(lead), facts=facts)
    return Table(stages, STAGES, lead=tuple(lead), notes=_notes(work, stages), facts=facts)


@dataclass(frozen=True, eq=False)
class ServingWork:
    """The iterations of an engine and their windows.

    Parameters
    ----------
    steps : StepsOfKernels of the source `iteration`
    windows : of the iterations that count
    told : [windows] what the name of each iteration tells
    """

    profile: ProfileData
    steps: StepsOfKernels
    windows: Windows
    told: list[Iteration]

    def numbers(self, field: str) -> Int64:
        """[windows] A number of each iteration, -1 where unknown."""
        return np.array([getattr(told, field) for told in self.told], np.int64)

    def are_of(self, stage: str) -> Bools:
        """[windows] Whether each is of a stage."""
        return np.array([told.stage == stage for told in self.told], bool)

    @property
    def stages(self) -> list[str]:
        """The stages, in order of appearance."""
        return list(dict.fromkeys(told.stage for told in self.told))


def serving_work(profile: ProfileData) -> ServingWork | str:
    """The iterations of an engine; why there are none, in words, if there are none."""
    if "start" not in profile.names:
        return "dict lines contain no times: run fastprof serving on the original trace"
    steps = profile.find_steps(None)
    if steps.source != SOURCE:
        try:
            steps = profile.find_steps(SOURCE)
        except StepsError:
            return NO_ITERATIONS
    if len(steps.labels) != len(steps):  # a part of the capture without a whole iteration
        return NO_ITERATIONS
    windows = windows_of(profile, steps)
    if not windows.is_known.any():
        return NO_ITERATIONS
    of_steps = [own for label in steps.labels if (own := iteration_of(label)) is not None]
    # A stage of which no iteration counts has those that begin or end with the capture.
    counted = {of_steps[step].stage for step in windows.step[windows.is_counted].tolist()}
    is_alone = np.array([own.stage not in counted for own in of_steps], bool)[windows.step]
    windows = windows.take(np.flatnonzero(windows.is_known & (windows.is_counted | is_alone)))
    return ServingWork(profile, steps, windows, [of_steps[step] for step in windows.step.tolist()])


NO_ITERATIONS: Final = (
    "no iterations of a serving engine: the trace has none of the ranges that vLLM, SGLang and "
    "TensorRT-LLM open around each (execute_context_..., step[DECODE ...], [Executor] "
    "_forward_step ...), nor stacks of transformers' generate; fastprof summary --by stage tells "
    "stages from functions and kernels"
)


def _empty(note: str, headings: tuple[Heading, ...]) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    return Table(
        dict.fromkeys((heading.key for heading in headings), none), headings, notes=(note,)
    )


def _stages(work: ServingWork, devices: Mapping[int, Device]) -> dict[str, ColumnData]:
    """The columns of STAGES, a row for each stage."""
    windows, tokens, requests = work.windows, work.numbers("tokens"), work.numbers("requests")
    wall, times = windows.wall, times_of(windows)
    before = np.minimum(_before(work), times["idle_ns"])
    parts, of_memory, known = _parts_of_windows(work, devices)
    rows: list[dict[str, float]] = []
    for stage in work.stages:
        own = work.are_of(stage)
        computed, count = _sum(tokens, own), int(own.sum())
        own_wall = float(wall[own].sum())
        row: dict[str, float] = {
            "iterations": len(set(windows.step[own].tolist())),
            "requests": _sum(requests, own) / count,
            "tokens": computed / count,
            "tokens_per_s": computed / max(own_wall, 1) * 1e9,
            "wall_ns": own_wall / count,
            "token_ns": own_wall / computed if computed else np.nan,
            "busy_ns": times["busy_ns"][own].sum() / count,
            "between_ns": before[own].sum() / count,
            "idle_ns": (times["idle_ns"] - before)[own].sum() / count,
        }
        for place, name in enumerate(PARTS):
            time = parts[own, place].sum()
            row[f"{name}_ns"] = time / computed if computed else np.nan
        busy = parts[own].sum()
        row["cost_share"] = known[own].sum() / busy if busy else np.nan
        is_told = row["cost_share"] >= _TELLS
        row["memory_share"] = of_memory[own].sum() / max(own_wall, 1) if is_told else np.nan
        rows.append(row)
    columns: dict[str, ColumnData] = {"stage": text_column(work.stages)}
    for heading in STAGES[1:]:
        values = np.array([row[heading.key] for row in rows])
        if heading.key == "iterations":
            columns[heading.key] = Ints(values.astype(np.int64))
        else:
            columns[heading.key] = Floats(values)
    return columns


def _sum(values: Int64, own: Bools) -> float:
    """The sum over some iterations, NaN if one of them is unknown."""
    chosen = values[own]
    return float(chosen.sum()) if (chosen >= 0).all() else np.nan


def _before(work: ServingWork) -> Int64:
    """[windows] Time from the start of the window to the first GPU work of the iteration."""
    windows, steps = work.windows, work.steps
    before: Int64 = np.maximum(steps.gpu_start[windows.step] - windows.start, 0)
    return before


def _parts_of_windows(
    work: ServingWork, devices: Mapping[int, Device]
) -> tuple[Floats64, Floats64, Floats64]:
    """The GPU time of each part in each window, [windows, PARTS]; the least time that the memory
    needs for the known bytes, and the GPU time of work with known bytes, [windows]. ns"""
    profile, windows = work.profile, work.windows
    n = len(windows)
    device = numbers(profile, "device")
    duration = np.maximum(numbers(profile, "sil"), 0).astype(np.float64)
    window = _window_of_kernels(work, device)
    part = _part_of_kernels(profile)
    inside = window >= 0
    at = window[inside].astype(np.int64) * len(PARTS) + part[inside]
    parts = np.bincount(at, duration[inside], n * len(PARTS)).reshape(n, len(PARTS))
    moved = numbers(profile, "bytes").astype(np.float64)
    rates = {number: own.bandwidth or np.nan for number, own in devices.items()}
    used, place = np.unique(device, return_inverse=True)
    rate = np.array([rates.get(number, np.nan) for number in used.tolist()])[place]
    is_known = inside & (moved >= 0) & np.isfinite(rate)
    least = np.minimum(moved[is_known] / rate[is_known] * 1e9, duration[is_known])
    of_memory = np.bincount(window[is_known], least, n)
    known = np.bincount(window[is_known], duration[is_known], n)
    return parts.astype(np.float64), of_memory.astype(np.float64), known.astype(np.float64)


def _window_of_kernels(work: ServingWork, device: Any) -> Int64:
    """[kernels] The counted window in which each was launched, on its GPU; -1 for none."""
    windows, step = work.windows, work.steps.of_kernel.astype(np.int64)
    result = np.full(len(step), -1, np.int64)
    lanes = windows.lanes
    for number in np.unique(lanes.device).tolist():
        rows = np.flatnonzero(lanes.device[windows.lane] == number)
        row_of_step = np.full(len(work.steps), -1, np.int64)
        row_of_step[windows.step[rows]] = rows
        own = device == number
        result[own] = take(row_of_step, step[own].astype(np.int32))
    return result


def _part_of_kernels(profile: ProfileData) -> Int64:
    """[kernels] The place in PARTS of each."""
    kind, stage = key_of(profile, "kind"), key_of(profile, "stage")
    of_kind = [_PART_OF_KIND.get(str(value), _OTHER) for value in kind.values]
    part = np.array([*of_kind, _OTHER], np.int64)[kind.ids]
    return np.where(stage.fits(lambda text: text.lstrip(INEXACT) == SAMPLING), _SAMPLING, part)


def _idle(work: ServingWork) -> Table:
    """The idle time of a mean iteration by place and cause."""
    every = windows_of(work.profile, work.steps)
    gaps = gaps_of_steps(work.profile, work.steps)
    counted = every.is_counted & every.is_known
    start = work.steps.gpu_start[every.step]
    times = by_work(work.profile, gaps, counted, start)
    n, wall = max(int(counted.sum()), 1), max(float(every.wall[counted].sum()), 1)
    rows = sorted(times.items(), key=lambda row: -row[1])
    time = np.array([ns for _, ns in rows], np.float64)
    columns: dict[str, ColumnData] = {
        "place": text_column([place for (place, _), _ in rows]),
        "cause": text_column([cause for (_, cause), _ in rows]),
        "ns": Floats(time / n),
        "share": Floats(time / wall),
    }
    return Table(columns, IDLE, total={"ns": time.sum() / n, "share": time.sum() / wall})


def _idle_lines(causes: Table) -> list[str]:
    """A sentence for each place: its idle time, and the largest causes."""
    lines = []
    for place, words in ((BEFORE, "before the first work of an iteration"), (INSIDE, "inside")):
        rows = [row for row in causes.rows() if row["place"] == place]
        time, share = (sum(row[name] for row in rows) for name in ("ns", "share"))
        if share >= _MENTIONED:
            named = [f"{row['cause']} {quantity(row['ns'], 'ns')}" for row in rows[:_MOST_CAUSES]]
            lines.append(f"idle {words}: {quantity(time, 'ns')}, {share:.1%} ({', '.join(named)})")
    return lines


def opening(profile: ProfileData, devices: Mapping[int, Device]) -> list[str]:
    """What the engine does, in a sentence for each stage, and the time between tokens if known."""
    work = serving_work(profile)
    if isinstance(work, str):
        return []
    between = between_tokens(work.windows, work.told)
    return [*lines_of(_stages(work, devices)), *([between.text()] if len(between.ns) else [])]


def lines_of(stages: Mapping[str, ColumnData]) -> list[str]:
    """A sentence for each stage: tokens per second, time per token and per iteration."""
    lines = []
    for row in range(len(stages["stage"])):
        at: dict[str, Any] = {name: column.at(row) for name, column in stages.items()}
        what = f"{at['stage']}: {at['iterations']} iteration{'s' * (at['iterations'] > 1)} of "
        what += f"{quantity(at['wall_ns'], 'ns')}"
        if at["requests"] is not None:
            what += f" for {at['requests']:.4g} request{'s' * (at['requests'] != 1)}"
        if at["token_ns"] is not None:
            what += (
                f", {at['tokens']:.4g} tokens: {rate_text(at['tokens_per_s'])}, "
                f"{quantity(at['token_ns'], 'ns')} per token"
            )
        else:
            what += "; its tokens are not recorded"
        lines.append(what)
    return lines


def rate_text(rate: float) -> str:
    """Tokens per second, of which four digits or all before the point are written."""
    return f"{rate:,.0f} tokens/s" if rate >= 1000 else f"{rate:.4g} tokens/s"


def _notes(work: ServingWork, stages: Mapping[str, ColumnData]) -> tuple[str, ...]:
    notes = []
    told, cut = work.told, work.windows.is_cut
    for stage in work.stages:
        if cut[work.are_of(stage)].all():
            notes.append(
                f"{stage}: the capture begins or ends with its only iteration, which may have "
                "waited for work that is not recorded"
            )
    if any(not each.is_sure for each in told):
        notes.append(
            "decode may contain prompts: the names of iterations tell only that requests have begun"
        )
    if any(each.tokens > each.requests for each in told if each.prompts == 0 <= each.requests):
        notes.append("iterations verify drafts: how many tokens were accepted is not recorded")
    shares = stages["memory_share"].array()
    if np.isnan(np.asarray(shares, np.float64)).any():
        notes.append(
            f"the memory's share needs a cost of {_TELLS:.0%} of the GPU time and a known bandwidth"
        )
    return tuple(notes)
