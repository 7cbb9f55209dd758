"""Messages about graphs and their captures: in `fastprof info`, warnings and errors."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.model.trace import Activity, Trace
from fastprof.profile.captured_graphs.fits import MIN_RATE, most_alike
from fastprof.profile.captured_graphs.sequences import Replays, Sequences

_MAX_FILES = 3  # per line
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
    """The attributes of `GraphCapture` as a sentence."""
    more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
    where = f"in {', '.join(files[:_MAX_FILES])}{more}" if files else "in the same file"
    text = (
        f"{matched} of {_counted(kernels, 'kernel')} of {_counted(launches, 'graph launch')} take "
        f"their call from {_counted(captures, 'capture')} {where}"
    )
    if rate is None:
        return text
    how = "name and order" if by_name else "order and number, without names"
    return f"{text}, match rate {_percent(rate)} by {how}"


def unmatched(name: str, launches: int, replayed: int, ambiguous: int) -> list[str]:
    """Warnings about graph launches without a capture."""
    found = []
    none, of = launches - replayed - ambiguous, _counted(launches, "graph launch")
    if none:
        found.append(
            f"{name}: no capture matches {none} of {of} to at least {_percent(MIN_RATE)} "
            "(names, order, size); their kernels keep the ranges around the launch; "
            f"{_RECORD}"
        )
    if ambiguous:
        found.append(
            f"{name}: several captures with different operators or shapes match {ambiguous} of "
            f"{of} equally well; their kernels keep the ranges around the launch; give only the "
            "capture of that batch size"
        )
    return found


def no_replay(trace: Trace) -> str:
    """Why a capture cannot be used: the trace has no replay."""
    if (trace.kernels.configs.kind == Activity.GRAPH).any():
        found = "found graphs that were traced as a whole; record with --cuda-graph-trace=node"
    elif trace.kernels.origin is not None and (trace.kernels.origin >= 0).any():
        found = "found that the trace itself records their capture; omit the capture file"
    else:
        found = "found none; give the trace with the graph launches, then its capture"
    return f"{trace.name}: expected kernels launched by cudaGraphLaunch or hipGraphLaunch, {found}"


def no_capture(names: Sequence[str]) -> str:
    """The files contain no capture."""
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
    """No capture matches.

    distinct : graph launches
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
        how, found = "in number (the capture records no names)", "other numbers"
        if ran == put:
            found = "kernels of several streams, whose order is not recorded"
    return (
        f"{offered[file][0]}: expected captures of the graphs that {trace.name} launches: that at "
        f"least {_percent(MIN_RATE)} of the kernels of one agree {how}; found {found}, "
        f"{_counted(ran, 'kernel')} in the launch and {_counted(put, 'call')} in the capture; give "
        "the capture of the same graph (model, version, batch size)"
    )


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 'es' if what.endswith('h') else 's'}"


def _percent(share: float) -> str:
    # Rounded down: less than all is never shown as 100 %.
    return f"{int(share * 1000) / 10:.1f} %"
