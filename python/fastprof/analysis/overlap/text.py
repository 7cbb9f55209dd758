"""The lines above and below the table of `overlap`."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fastprof.analysis.gpu_work import TimeLine
from fastprof.analysis.grouping import Grouping, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.overlap.exposure import Exposure
from fastprof.analysis.saturated import limited
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import Floats, Table
from fastprof.model.trace import NO_TIME
from fastprof.ops.collectives.messages import BARRIER
from fastprof.profile.collectives import COMMUNICATION
from fastprof.profile.data import ProfileData
from fastprof.profile.program import OTHER, TORCH, WITH_OPERATORS
from fastprof.profile.recording_hints import recorder_of_calls

Rows: TypeAlias = npt.NDArray[np.intp]

NO_TIMES: Final = "dict lines contain no times: use the original trace"
_NO_COMMUNICATION: Final = (
    "no communication kernels: neither NCCL, RCCL, MSCCL, NVSHMEM nor an all-reduce of a serving "
    "stack"
)
_WAITING: Final = "times include waiting for other ranks; fastprof ranks tells for which, and why"
_GRAPHS: Final = (
    "{} CUDA graphs recorded without their kernels count as compute: record with "
    "--cuda-graph-trace=node"
)
_DAMAGED: Final = "{} communication kernels with an impossible duration count as 0"
_TWICE: Final = (
    "{} of communication at the same time as other communication counts once, for the kernel that "
    "started first"
)
_SAME_STREAM: Final = (
    "GPU {}: {} of the communication runs on stream {}, which runs most of the compute; work on "
    "one stream cannot overlap: {}"
)
_OTHER_STREAM: Final = {
    TORCH: "pass async_op=True, or use another stream",
    OTHER: "use another stream",
}
_SIZES: Final = "message sizes known for {:.1%} of the communication time{}"
_SHAPES: Final = {
    "nsys": ": export with nsys export --include-blobs=true",
    "rocpd": ": record with rocprofv3 --rccl-trace",
    "kineto": ": profile(record_shapes=True), or a PyTorch of 2024 or later",
}
_EMIT: Final = ", or wrap the run in torch.autograd.profiler.emit_nvtx(record_shapes=True)"
_CUT: Final = ": the launches of the rest are not in the file; start the recording earlier"
_RANKS: Final = "no bus bandwidth without the number of ranks, which {}"
_GROUPS: Final = {
    "kineto": "torch.profiler records since 2024",
    "nsys": "NCCL records when it makes a communicator: start the recording before that",
}

_GPUS: Final = 100  # in the table; JSON has all
_REST: Final = 0.05  # of the time
_SHARE_OF_COMPUTE: Final = 0.5


def lead(exposure: Exposure) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The time line of each GPU as text, and for JSON."""
    if not exposure.of_device:
        return (), {}
    of_device = exposure.of_device.largest()
    lines = list(of_device.values())

    def column(name: str) -> Int64:
        return limited(getattr(line, name) for line in lines)

    shares = [np.nan if line.hidden_share is None else line.hidden_share for line in lines]
    devices = [device if device >= 0 else None for device in of_device]
    table = Table(
        {
            "device": Ints(np.array(list(of_device), np.int64)),
            **{heading.key: Ints(column(heading.key)) for heading in _OF_GPUS},
            "hidden_share": Floats(np.array(shares)),
        },
        (_GPU, *_OF_GPUS, _HIDDEN),
    )
    facts = [
        {"device": device}
        | {f"{name}_ns": getattr(line, name) for name in (*TimeLine._fields, "hidden")}
        | {"hidden_share": line.hidden_share}
        for device, line in zip(devices, lines, strict=True)
    ]
    text = (*table.text(_GPUS).splitlines(), _IDENTITY, "")
    return text, {"gpus": facts, **exposure.of_device.rest()}


_GPU: Final = Heading("device", "GPU")
_OF_GPUS: Final = tuple(
    Heading(key, header, "ns", same_unit="span")
    for key, header in (
        ("span", "span"),
        ("compute", "compute"),
        ("exposed_communication", "exposed"),
        ("exposed_copy", "copy"),
        ("idle", "idle"),
        ("communication", "comm"),
    )
)
_HIDDEN: Final = Heading("hidden_share", "hidden", "share", decimals=1)
_IDENTITY: Final = "span = compute + exposed communication + exposed copies + idle"


def notes(profile: ProfileData, exposure: Exposure, rows: Rows) -> tuple[str, ...]:
    """What is missing, estimated or left out.

    rows : the communication kernels of the table
    """
    classes = key_of(profile, "kind")
    if COMMUNICATION not in classes.values:
        return (_NO_COMMUNICATION,)
    if not len(rows):
        return ()
    duration = numbers(profile, "sil")[rows]
    time = np.maximum(duration, 0).astype(np.int64)
    total = int(time.sum())
    lines = [*_same_stream(profile, classes, rows), *_unknown(profile, rows, time)]
    twice = total - int(exposure.hidden[rows].sum() + exposure.exposed[rows].sum())
    if twice:
        lines.append(_TWICE.format(quantity(twice, "ns")))
    if damaged := np.count_nonzero(duration < 0):
        lines.append(_DAMAGED.format(damaged))
    if "graph" in classes.values:
        graphs = np.count_nonzero(classes.ids == classes.values.index("graph"))
        lines += [_GRAPHS.format(graphs)] if graphs else []
    return (*lines, _WAITING)


def _same_stream(profile: ProfileData, classes: Values, rows: Rows) -> list[str]:
    """A line for each GPU where communication runs on the stream with most of the compute."""
    is_compute = ~classes.fits(lambda name: name in (COMMUNICATION, "memcpy", "memset"))
    is_wanted = np.zeros(len(profile), bool)
    is_wanted[rows] = True
    device, stream = (key_of(profile, name) for name in ("device", "stream"))
    size = len(stream.values) + 1
    place = (device.ids + np.int32(1)) * np.int32(size) + stream.ids + np.int32(1)
    streams = Grouping(place, (len(device.values) + 1) * size)
    time = np.ascontiguousarray(numbers(profile, "sil"), np.int64)
    sums = [streams.sum_where(time, own).reshape(-1, size) for own in (is_compute, is_wanted)]
    lines = {}
    for i, (computing, communicating) in enumerate(zip(*sums, strict=True)):
        most = int(computing.argmax())
        share = communicating[most] / max(communicating.sum(), 1)
        if most and share and computing[most] >= _SHARE_OF_COMPUTE * computing.sum():
            number = device.values[i - 1] if i else "na"
            how = profile.contents.program.choose(_OTHER_STREAM)
            shown = f"{share:.0%}", stream.values[most - 1], how
            lines[number] = _SAME_STREAM.format(number, *shown)
    return [line for _, line in sorted(lines.items(), key=str)]


def _unknown(profile: ProfileData, rows: Rows, time: Int64) -> list[str]:
    """A line for sizes, or else numbers of ranks, that are unknown for part of the time."""
    message = profile.source.messages.message
    ids, total = message.ids[rows], max(int(time.sum()), 1)
    no_size = np.array([value.size is None and value.kind != BARRIER for value in message.values])
    no_bus = np.array([value.bus is None and value.kind != BARRIER for value in message.values])
    without = time[no_size[ids]].sum()
    kind, lines = profile.about.format, []
    if without > _REST * total:
        not_launched = time[no_size[ids] & (numbers(profile, "launch_start")[rows] == NO_TIME)]
        is_cut = not_launched.sum() > without / 2
        emits = kind in ("nsys", "rocpd") and profile.contents.program.kind in WITH_OPERATORS
        advice = _CUT if is_cut else _SHAPES.get(kind, "") + _EMIT * emits
        if is_cut and not len(profile.api):
            advice = f": no API calls in the file; record with {recorder_of_calls(profile.about)}"
        lines.append(_SIZES.format(1 - without / total, advice))
    if time[no_bus[ids]].sum() - without > _REST * (total - without):
        lines.append(_RANKS.format(_GROUPS.get(kind, "is not recorded")))
    return lines
