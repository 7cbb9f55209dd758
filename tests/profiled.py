"""What fastprof says of each kernel, as plain values, to be compared with the oracle's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fastprof.assemble import Assembly
from fastprof.attribute import attribute
from fastprof.sources.detect import read_trace


@dataclass(eq=False)
class Row:
    """A row of the report, and which instances its columns come from.

    Parameters
    ----------
    key : start, correlation id and name, which tell the kernel
    meaning : start and name of the range that says what the kernel is for: backward, its forward
        call's
    call : number of the call instance that it is a part of, -1 for none
    """

    key: tuple[int, int, str]
    direction: str | None
    op: str | None
    mod: str | None
    params: str | None
    flops: int
    bytes: int
    duration: int
    meaning: tuple[int, str] | None
    call: int


def rows(path: Path) -> list[Row]:
    """The rows of a trace, in order of start."""
    trace = read_trace(path, None, False)
    found = attribute(trace)
    made = Assembly(trace, found)
    names, _ = made.names
    costs, ranges, kernels = made.costs, trace.ranges, trace.kernels
    flops, bytes_ = made.flops.values, made.bytes.values
    texts = [
        [None if i < 0 else column.values[i] for i in column.ids.tolist()]
        for column in (names, costs.op, costs.mod, costs.params)
    ]
    range_of = np.where(made.meaning >= 0, found.frame_range[made.meaning], -1).tolist()
    return [
        Row(
            key=(int(kernels.start[i]), int(kernels.correlation[i]), texts[0][i]),
            direction=(None, "fprop", "bprop")[made.direction[i]],
            op=texts[1][i],
            mod=texts[2][i],
            params=texts[3][i],
            flops=int(flops[i]),
            bytes=int(bytes_[i]),
            duration=int(kernels.duration[i]),
            meaning=None
            if range_of[i] < 0
            else (int(ranges.start[range_of[i]]), found.meanings[ranges.label[range_of[i]]].name),
            call=int(made.calls.group[i]),
        )
        for i in range(len(kernels))
    ]
