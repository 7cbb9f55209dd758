"""fastprof's results for each kernel as plain values, to compare with the oracle's."""

from dataclasses import dataclass
from pathlib import Path

from fastprof._core._take import take
from fastprof.model.markers import Kind, SourceLines
from fastprof.model.trace import Recording
from fastprof.profile.callpath.attribution import Attribution, attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.profile.lookups import Lookups
from fastprof.readers.detect import read_trace

Place = tuple[int, str]  # start and name of a range


@dataclass(eq=False)
class Row:
    """A row of the report, and which instances its columns come from.

    Parameters
    ----------
    key : start and correlation id, which tell the kernel
    launched : ns
    operators : PyTorch's ranges around the launch, innermost first
    meaning : the range that says what the kernel is for: backward, its forward call's
    call : number of the call instance that it is a part of, -1 for none
    """

    key: tuple[int, int]
    name: str
    launched: int | None
    direction: str | None
    op: str | None
    mod: str | None
    params: str
    flops: int
    bytes: int
    exact: int
    duration: int
    device: int
    tc: str | None
    call: int
    operators: tuple[Place, ...]
    meaning: Place | None


def rows(path: Path) -> list[Row]:
    """The rows of a trace, in order of start."""
    trace = read_trace(path, None, False)
    places = _Places(trace, attribute(nest(trace)).attribution)
    made = Lookups(trace, places.found, SourceLines(()))
    names, _ = made.names
    costs, kernels = made.costs, trace.kernels
    columns = (names, costs.op, costs.mod, costs.params, made.flops, made.bytes, made.exact)
    device = take(kernels.configs.device, kernels.config)
    tc, call = costs.tc, made.calls.group
    launched = take(trace.launches.start, kernels.launch)
    return [
        Row(
            (int(kernels.start[i]), int(kernels.correlation[i])),
            columns[0].at(i),
            int(launched[i]) if kernels.launch[i] >= 0 else None,
            (None, "fprop", "bprop")[made.direction[i]],
            *(column.at(i) for column in columns[1:4]),
            *(-1 if (value := column.at(i)) is None else value for column in columns[4:]),
            int(kernels.duration[i]),
            int(device[i]),
            tc.at(i),
            int(call[i]),
            places.operators(int(made.frame[i])),
            places.of(int(made.meaning[i])),
        )
        for i in range(len(kernels))
    ]


class _Places:
    """Frames as plain values."""

    def __init__(self, recording: Recording, found: Attribution) -> None:
        self.found, self._start = found, recording.ranges.start
        self._known: dict[int, tuple[Place, ...]] = {}

    def of(self, frame: int) -> Place | None:
        if frame < 0:
            return None
        each = self.found.frame_range[frame]
        meaning = self.found.meanings[self.found.ranges.label[each]]
        return int(self._start[each]), meaning.name

    def operators(self, frame: int) -> tuple[Place, ...]:
        """PyTorch's ranges among a frame and those around it, innermost first."""
        chain = []
        while frame >= 0 and frame not in self._known:
            chain.append(frame)
            frame = int(self.found.frame_parent[frame])
        around = self._known.get(frame, ())
        for each in reversed(chain):
            label = self.found.ranges.label[self.found.frame_range[each]]
            place = self.of(each)
            if place is not None and self.found.meanings[label].kind == Kind.TORCH:
                around = (place, *around)
            self._known[each] = around
        return around
