"""`whatif`: what a step would take if some of it were faster or absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastprof.analysis.key_names import heading_of
from fastprof.analysis.notes import timeline_notes
from fastprof.analysis.recorder import recorder_lines
from fastprof.analysis.replay.changes import (
    Answer,
    Calibrated,
    Change,
    answers_of,
    calibrated,
    changes_of,
)
from fastprof.analysis.replay.columns import CHANGES, OF_OTHER_GPU, OF_PATH, OF_SPEEDUPS
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.path import Path, path_by, path_of, path_rows
from fastprof.analysis.replay.runs import Weights
from fastprof.analysis.replay.speedups import speedups
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.recording_hints import recorder_of_calls
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    from fastprof.analysis.replay.other_gpu import OtherGpu

_LARGE: Final = 0.01  # share of a step that a note mentions


def whatif(
    profile: ProfileData,
    scale: str | Sequence[str] | None = None,
    ideal: str | Sequence[str] | None = None,
    remove: str | Sequence[str] | None = None,
    fuse: str | Sequence[str] | None = None,
    overlap: str | Sequence[str] | None = None,
    dtype: str | None = None,
    pad: int | None = None,
    graph: bool = False,
    no_sync: bool = False,
    no_data_loading: bool = False,
    on: str | None = None,
    by: str | Sequence[str] | None = None,
    steps: str | None = None,
    roof: str = "peak",
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """Replay the run with changes. See docs/replay.md.

    Without changes, a row per virtual speed-up; with changes, a row per change and one for all
    together; with `by`, a row per group of the critical path.

    Parameters
    ----------
    scale : "KEY=PATTERN:FACTOR" or "host:FACTOR", GPU or host time times the factor
    ideal : "KEY=PATTERN", kernels at the roofline
    remove : "KEY=PATTERN", no such kernels, nor their launches
    fuse : "KEY=PATTERN", neighbours on a stream, in one layer and phase, as one kernel
    overlap : "KEY=PATTERN", copies or communication behind other work
    dtype : "tf32", "fp16", "bf16" or "fp8", the type of fp32 products
    pad : 16-bit products padded to multiples of this
    graph : launches between waits as one CUDA graph
    no_sync : no waits of the host for the GPU
    no_data_loading : batches are ready when the host fetches them
    on : a GPU of the table: times of kernels there, see `fastprof.analysis.replay.other_gpu`
    by : keys of the critical path; with `on`, of the GPU time
    steps : what a step is, see `Profile.find_steps`
    roof : "peak" or "practical", see `fastprof.analysis.roofline.ideal.PRACTICAL`
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        A selector, GPU or figure is unknown, or what a change needs is not recorded.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    options: dict[str, Any] = {
        "scale": scale, "ideal": ideal, "remove": remove, "fuse": fuse, "overlap": overlap,
        "dtype": dtype, "pad": pad, "graph": graph, "no_sync": no_sync,
        "no_data_loading": no_data_loading,
    }  # fmt: skip
    devices = devices_with(profile, gpu, peak, bandwidth)
    options["on"] = other = None if on is None else _other_gpu(on, devices)
    changes = changes_of(options, devices, roof)
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if "start" not in profile.names or not len(profile):
        return _nothing(profile)
    model = _model(profile, steps)
    if not len(model.rows):
        return _nothing(profile, "no step has GPU work of known length: --steps names another mark")
    return _answer(model, changes, names, steps, other)


def _other_gpu(name: str, devices: Mapping[int, Device]) -> OtherGpu:
    """The GPU of `--on`; seldom used, so loaded here."""
    from fastprof.analysis.replay.other_gpu import OtherGpu

    return OtherGpu(name, devices)


def _model(profile: ProfileData, steps: str | None) -> Model:
    """The graph of a profile, that of an earlier replay if such are kept."""
    replays = profile.source.replays
    if replays is None:
        return Model(profile, steps)
    model: Model | None = replays.get(steps)
    if model is None or model.whole is not profile:
        replays.clear()
        model = replays[steps] = Model(profile, steps)
    return model


def _answer(
    model: Model,
    changes: Sequence[Change],
    by: tuple[str, ...],
    source: str | None,
    other: OtherGpu | None,
) -> Table:
    """The table of changes, of the critical path or of virtual speed-ups."""
    wall = model.run(model.base).wall
    steps = model.whole.find_steps(source)
    start = calibrated(model, steps)
    path = path_of(model, model.run(start.weights))
    answers, ends = answers_of(model, changes, start)
    facts = {
        **_facts(model, wall, path, start),
        "changes": [_fact(answer) for answer in answers],
    }
    lead, notes = [*_lead(model, steps, wall, path, start)], [*model.steps.notes, *_notes(model)]
    if other is not None:
        from fastprof.analysis.replay.other_gpu_report import facts_of, lead_of, notes_of

        facts["on"] = facts_of(model, other, ends, answers[-2:])
        lead.append(lead_of(facts["on"]))
        notes.extend(notes_of(other, facts["on"]))
    headings: Sequence[Heading]
    if by:
        columns, headings = _by(model, other, ends, by)
    elif changes:
        columns = _of_changes(answers, model, start, path)
        headings = [
            replace(change, header=steps.unit) if change.header == "step" else change
            for change in CHANGES
        ]
    else:
        columns, headings = speedups(model, path, start), OF_SPEEDUPS
    notes.extend(timeline_notes(model.whole))
    return Table(columns, tuple(headings), lead=(*lead, ""), notes=tuple(notes), facts=facts)


def _by(
    model: Model, other: OtherGpu | None, ends: Sequence[Weights], by: tuple[str, ...]
) -> tuple[dict[str, ColumnData], Sequence[Heading]]:
    """The critical path by keys; with another GPU, the GPU time there."""
    if other is None:
        return path_by(model, ends[0], by), (*map(heading_of, by), *OF_PATH)
    from fastprof.analysis.replay.other_gpu_report import times_by

    return times_by(model, other, ends, by), (*map(heading_of, by), *OF_OTHER_GPU)


def _of_changes(
    answers: list[Answer], model: Model, start: Calibrated, path: Path
) -> dict[str, ColumnData]:
    length = model.mean(model.wall) if start.factor is None else start.wall
    name = "recorded" if start.factor is None else "without the recorder"
    rows = [Answer(name, length, 0.0, *path.binds(), 0), *answers]
    return {
        "name": text_column([row.name for row in rows]),
        "wall_ns": Ints(rounded(np.array([row.wall for row in rows]))),
        "saved_ns": Ints(
            rounded(np.array([row.saved for row in rows])), none=np.iinfo(np.int64).min
        ),
        "share": Floats(np.array([row.saved / max(length, 1.0) for row in rows])),
        "binds": text_column([row.binds for row in rows]),
        "binds_share": Floats(np.array([row.binds_share for row in rows])),
        "changed": Ints(np.array([row.changed for row in rows], np.int64)),
    }


def _fact(answer: Answer) -> dict[str, Any]:
    return {
        "name": answer.name,
        "wall_ns": round(answer.wall),
        "saved_ns": round(answer.saved),
        "binds": answer.binds,
        "changed": answer.changed,
    }


def _facts(model: Model, wall: Int64, path: Path, start: Calibrated) -> dict[str, Any]:
    steps, replayed = model.steps, wall.tolist()
    return {
        "steps": [
            {
                "step": int(steps.number[row]),
                "pid": int(steps.pid[row]),
                "is_counted": bool(model.is_counted[i]),
                "wall_ns": int(model.wall[i]),
                "replayed_ns": replayed[i],
            }
            for i, row in enumerate(model.rows.tolist())
        ],
        "resources": {name: round(ns) for name, ns in path.by_resource().items() if ns},
        "critical_path": path_rows(model, path),
        "without_recorder_ns": None if start.factor is None else round(start.wall),
        "host_factor": start.factor,
        "unexplained_ns": model.graph.unexplained,
        "cut": model.graph.n_cut,
    }


def _lead(
    model: Model, steps: StepsOfKernels, wall: Int64, path: Path, start: Calibrated
) -> Iterator[str]:
    profile = model.whole
    gpus = gpu_names(profile.about, profile.column("device"))
    yield ", ".join(filter(None, [gpus, model.steps.description]))
    recorded, replayed = model.mean(model.wall), model.mean(wall)
    off = float(np.abs(wall - model.wall).max(initial=0) / max(recorded, 1.0))
    what = steps.unit
    yield (
        f"{what} {quantity(round(recorded), 'ns')}; replayed without changes "
        f"{quantity(round(replayed), 'ns')}, largest difference of a {what} {off:.2%}"
    )
    yield from recorder_lines(profile, steps, has_idle=False)
    if start.factor is not None:
        loading = " and data loading" * any(left < 1 for left in start.weights.left)
        yield (
            f"replayed without the recorder: the host's own time{loading} times {start.factor:.2g}"
        )
    total = sum(path.by_resource().values())
    shares = sorted(path.by_resource().items(), key=lambda pair: -pair[1])
    parts = [f"{name} {ns / total:.0%}" for name, ns in shares if 0 < ns >= 0.005 * total]
    yield f"critical path: {', '.join(parts) or 'empty'}"


def _notes(model: Model) -> Iterator[str]:
    graph = model.graph
    total = int(model.wall.sum())
    if graph.unexplained > _LARGE * total:
        yield (
            f"{quantity(graph.unexplained, 'ns')}, {graph.unexplained / max(total, 1):.1%} of the "
            "steps: kernels wait for something that the trace does not record; no change "
            "shortens these waits"
        )
    if graph.n_cut:
        yield (
            f"{graph.n_cut} kernels start before their launch: these launches are ignored; the "
            "clocks of host and GPU differ"
        )
    if graph.n_unplaced > 1:
        yield f"{graph.n_unplaced} kernels without launch start at their recorded time"
    if not len(model.whole.api):
        yield (
            "no API calls in the file: GPU times can change, launches and the host cannot; record "
            f"them with {recorder_of_calls(model.whole.about)}"
        )
    elif not (model.whole.api.of_kernel >= 0).any():
        yield "no launches in the file: GPU times can change; host changes have no effect on them"
    if model.steps.unit != "step":
        yield f"no steps: all times are those of the {model.steps.unit}"


def _nothing(profile: ProfileData, why: str = "no GPU work in the file") -> Table:
    """A table without rows, and the reason."""
    if "start" not in profile.names:
        why = "dict lines contain no times: run fastprof whatif on the original trace"
    none: ColumnData = Ints(np.empty(0, np.int64))
    return Table({change.key: none for change in CHANGES}, CHANGES, notes=(why,))
