"""Jobs of the replay: its graph, replays without changes, and changes of many kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastprof.analysis.replay.model import Model

N_REPLAYS, N_CHANGES = 20, 100
_SELECTORS = ("kind=gemm", "kind=elementwise", "dir=fprop", "dir=bprop", "phase=forward")


def graph(path: str) -> Model:
    """Open, read the calls of the host, and build the graph."""
    import fastprof
    from fastprof.analysis.replay.model import Model

    return Model(fastprof.open(path, copies=True))


def replays(path: str) -> object:
    """The same, and replays without changes."""
    model = graph(path)
    return [model.mean(model.run(model.base).wall) for _ in range(N_REPLAYS)]


def changes(path: str) -> object:
    """The same as `graph`, and 100 changes, each replayed alone."""
    from fastprof.analysis.replay.changes import answers_of, calibrated, changes_of

    model, result = graph(path), []
    start = calibrated(model, model.steps)
    for i in range(N_CHANGES // 10):
        scales = [f"{selector}:{factor}" for selector in _SELECTORS for factor in (0.5, i / 20)]
        options = {"scale": scales[:7], "remove": [_SELECTORS[i % len(_SELECTORS)]]}
        options |= {"no_sync": True, "graph": True}
        for change in changes_of(options, {}, "peak"):
            result += answers_of(model, [change], start)[0]
    return result
