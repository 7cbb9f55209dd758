"""Capture -> one dict per kernel: the values of the report by column name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.baseline.calls import NO_CALL, find_calls
from bench.baseline.capture import Capture
from bench.baseline.costs import shared, shares
from bench.baseline.dictlines import Subs, duration, short_name, size
from bench.baseline.links import meaning_of, numbers_of
from bench.baseline.tables import LOW_24_BITS


def rows(capture: Capture) -> Iterator[dict[str, Any]]:
    """Rows in order of start; None: unknown."""
    of_kernels = [frame for frame in capture.frames if frame is not None]
    call_of = find_calls(capture.all_frames, of_kernels)
    calls = [NO_CALL if frame is None else call_of(frame) for frame in capture.frames]
    names = [capture.long_name(kernel) for kernel in capture.kernels]
    durations = [duration(kernel) for kernel in capture.kernels]
    result = shares(calls, names, [-1 if ns is None else ns for ns in durations])
    flops, moved = shared(result, "flops"), shared(result, "bytes")
    subs = Subs()
    for i, kernel in enumerate(capture.kernels):
        launch, frame, share = capture.launches[i], capture.frames[i], result[i]
        node = capture.root if frame is None else frame.node
        meaning = capture.root if frame is None else meaning_of(frame).node
        seq, others = (None, []) if frame is None else numbers_of(frame)
        yield {
            "idx": i + 1,
            "seq": seq,
            "altseq": tuple(others),
            "tid": None if launch is None else launch.thread & LOW_24_BITS,
            "layer": meaning.layer,
            "trace": meaning.trace,
            "dir": "bprop" if capture.by_engine[i] else node.direction,
            "sub": subs.next(kernel.process, seq, node),
            "mod": share.call.mod,
            "op": share.op,
            "kernel": None if names[i] is None else short_name(names[i]),
            "params": share.params,
            "sil": durations[i],
            "tc": share.tensor_cores,
            "device": kernel.device,
            "stream": kernel.stream,
            "grid": size(*kernel[7:10]),
            "block": size(*kernel[10:13]),
            "flops": flops[i],
            "bytes": moved[i],
            "start": kernel.start,
            "name": names[i],
            "correlation": kernel.correlation,
            "launch": launch and capture.strings.get(launch.name),
            "launch_start": launch and launch.start,
            "ranges": meaning.ranges,
        }
