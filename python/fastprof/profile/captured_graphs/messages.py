"""What is said of graphs and their captures: in `fastprof info`, in warnings and in errors."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.model.trace import Activity, Trace
from fastprof.profile.captured_graphs.fits import LEAST_RATE, most_alike
from fastprof.profile.captured_graphs.sequences import Replays, Sequences

_MOST_FILES = 3  # in one line
_RECORD = (
    "record the start of the program, where it captures its graphs, with torch.profiler and "
    "record_shapes=True"
)


def outcome(
    files: Sequence[str],
    launches: int,
    kernels: int,
    replayed: int,
    matched: int,
    captures: int,
    rate: float | None,
    by_name: bool,
) -> str:
    """What came of it: the attributes of `GraphCapture` as a sentence."""
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    where = f"in {', '.join(files[:_MOST_FILES])}{more}" if files else "in the same file"
    told = (
        f"{matched} of {_counted(kernels, 'kernel')} of {_counted(launches, 'graph launch')} take "
        f"their call from {_counted(captures, 'capture')} {where}"
    )
    if rate is None:
        return told
    how = "name and order" if by_name else "order and number, without names"
    return f"{told}, match rate {_percent(rate)} by {how}"


def left_out(name: str, launches: int, replayed: int, torn: int) -> list[str]:
    """What is said of launches of graphs that got no capture."""
    found = []
    none, of = launches - replayed - torn, _counted(launches, "graph launch")
    if none:
        found.append(
            f"{name}: no capture agrees with {none} of {of} to at least {_percent(LEAST_RATE)} "
            "(names, order, size); their kernels keep the ranges around the launch; "
            f"{_RECORD}"
        )
    if torn:
        found.append(
            f"{name}: several captures, with other operators or shapes, agree with {torn} of {of} "
            "equally well; their kernels keep the ranges around the launch; give the capture of "
            "that batch size alone"
        )
    return found


def no_replay(trace: Trace) -> str:
    """Why a capture helps nothing."""
    if (trace.kernels.configs.kind == Activity.GRAPH).any():
        found = "found graphs that were traced as a whole; record with --cuda-graph-trace=node"
    elif trace.kernels.origin is not None and (trace.kernels.origin >= 0).any():
        found = "found that the trace itself says where these were captured; leave the capture out"
    else:
        found = "found none; give the trace in which the graph is launched, then its capture"
    return (
        f"{trace.name}: expected kernels that cudaGraphLaunch or hipGraphLaunch started, for their "
        f"calls to be taken from a capture, {found}"
    )


def no_capture(names: Sequence[str]) -> str:
    """Why files are no capture."""
    return (
        f"{', '.join(names)}: expected the capture of a CUDA or HIP graph (API calls between "
        f"StreamBeginCapture and StreamEndCapture), found none; {_RECORD}"
    )


def no_fit(
    trace: Trace,
    replays: Replays,
    distinct: Sequence[int],
    offered: Sequence[tuple[str, Sequences]],
) -> str:
    """Why no capture is used.

    distinct : launches of graphs
    offered : name and captures of each file
    """
    (rate, ran, put, by_name), file = max(
        (most_alike(replays, launch, each, capture), file)
        for launch in distinct
        for file, (_, each) in enumerate(offered)
        for capture in range(len(each))
    )
    if by_name:
        how, found = "by name, order and grid", f"at most {_percent(rate)} with equal names"
    else:
        how, found = "in number, since its calls tell no names", "other numbers"
        if ran == put:
            found = "kernels of several streams, whose order the trace does not tell"
    return (
        f"{offered[file][0]}: expected captures of the graphs that {trace.name} launches: that at "
        f"least {_percent(LEAST_RATE)} of the kernels of one agree {how}; found {found}, "
        f"{_counted(ran, 'kernel')} in the launch and {_counted(put, 'call')} in the capture; give "
        "the capture of the same graph (model, version, batch size)"
    )


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 'es' if what.endswith('h') else 's'}"


def _percent(share: float) -> str:
    # Never rounded up to all.
    return f"{int(share * 1000) / 10:.1f} %"
