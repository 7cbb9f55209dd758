"""Rules on the causes of idle time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.host_states import SETUP, State
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.idle_overview import starved_share
from fastprof.analysis.recorder import without_recorder
from fastprof.model.quantity import quantity

__all__: list[str] = []

_STARVED: Final = 0.1  # of the kernels; with fewer, the queue of the GPU hides the launches


@rule("data-loading", least=0.05)
def data_loading(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for batches."""
    ns = facts.idle.mean("data loading")
    if not ns:
        return
    yield Finding(
        what="The GPU waits for the data loader.",
        where=_places(facts, ("data loading",), "line", "range"),
        evidence=_evidence(facts, "data loading"),
        remedy=_loader_remedy(_names(facts, ("data loading",), "range")),
        confidence="high",
        why="the thread that launches the next work is in the loader during this time",
        idle_ns={"data loading": ns},
    )


def _loader_remedy(ranges: list[str]) -> str:
    """The change for a loader with or without worker processes."""
    if any("MultiProcessing" in each for each in ranges):
        return (
            "raise num_workers and prefetch_factor of the DataLoader, or move transforms to the GPU"
        )
    return (
        "DataLoader(num_workers=4, pin_memory=True, persistent_workers=True) prefetches batches; "
        "or move transforms to the GPU"
    )


@rule("alloc", least=0.02)
def alloc(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for allocations, frees, creation, and loading and compilation of code."""
    by_cause = {cause: ns for cause in _SETUP if (ns := facts.idle.mean(cause))}
    if not by_cause:
        return
    most = max(by_cause, key=lambda cause: by_cause[cause])
    calls = _names(facts, (most,), "call")
    yield Finding(
        what="The GPU waits while the host " + _DOES[most] + ".",
        where=_places(facts, _SETUP, "call", "line", "range"),
        evidence=_evidence(facts, *by_cause),
        remedy=_setup_remedy(most, calls),
        confidence="high" if facts.has_steps else "low",
        why="the thread that launches the next work does so during this time"
        if facts.has_steps
        else "without steps, this includes the start of the program",
        idle_ns=by_cause,
    )


_SETUP: Final = tuple(CAUSES[state] for state in SETUP)
_DOES: Final = dict(
    zip(
        _SETUP,
        ("compiles code", "loads code", "creates streams or contexts", "allocates memory",
         "frees memory"),
        strict=True,
    )
)  # fmt: skip


def _setup_remedy(cause: str, calls: list[str]) -> str:
    """The change for the cause that takes most."""
    if cause in (CAUSES[State.ALLOC], CAUSES[State.FREE]):
        return _alloc_remedy(calls)
    if cause == CAUSES[State.CREATION]:
        return "create streams and handles once, before the loop, and use them again"
    if cause == CAUSES[State.COMPILATION]:
        return "code is compiled at its first use, and for new shapes: record after the first steps"
    return "code is loaded at its first use: record after the first steps (schedule(warmup=2))"


def _alloc_remedy(calls: list[str]) -> str:
    """The change for the call that takes most."""
    first = calls[0] if calls else ""
    if "Free" in first:
        return (
            "do not call torch.cuda.empty_cache() in the loop; against fragmentation, "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        )
    if "Host" in first or "Register" in first:
        return "allocate pinned memory once, before the loop: DataLoader(pin_memory=True)"
    return (
        "keep shapes equal, so that the caching allocator reuses its blocks; record after "
        "the first steps"
    )


@rule("sync", least=0.02)
def sync(facts: Facts) -> Iterator[Finding]:
    """The GPU waits because the host waited for it."""
    causes = ("sync", "blocking copy")
    by_cause = {cause: facts.idle.mean(cause) for cause in causes}
    if not any(by_cause.values()):
        return
    operators = _names(facts, causes, "op")
    yield Finding(
        what="The host waits for the GPU and launches nothing ahead, then the GPU waits.",
        where=_places(facts, causes, "op", "call", "line", "range"),
        evidence=_evidence(facts, *(cause for cause, ns in by_cause.items() if ns)),
        remedy=_sync_remedy(operators),
        confidence="medium",
        why="the wait may be required; the time after it is idle because nothing is queued",
        idle_ns=by_cause,
    )


def _sync_remedy(operators: list[str]) -> str:
    """The changes for the operators that wait."""
    remedies = []
    if {"item", "_local_scalar_dense", "is_nonzero"} & {*operators}:
        remedies.append(
            ".item(), print() and `if tensor:` wait: keep values on the GPU, log every N steps"
        )
    if {"nonzero", "index", "masked_select", "unique"} & {*operators}:
        remedies.append("shapes that depend on values wait: use torch.where instead of a mask")
    if not remedies or {"copy_", "_to_copy", "to"} & {*operators}:
        remedies.append("copy from pinned memory with .to(device, non_blocking=True)")
    return "; ".join(remedies)


@rule("launch-bound", least=0.03)
def launch_bound(facts: Facts) -> Iterator[Finding]:
    """Kernels are shorter than the host takes to launch them."""
    causes = ("launch-bound", "launch latency")
    by_cause = {cause: facts.idle.mean(cause) for cause in causes}
    starved = starved_share(facts.profile)
    if starved is None or starved < _STARVED:
        return
    repeats = facts.repeated_kernels
    graph = (
        "shapes repeat: torch.cuda.make_graphed_callables, or torch.compile"
        if repeats
        else "torch.compile"
    )
    yield Finding(
        what="The GPU finishes kernels faster than the host launches them.",
        where=_places(facts, causes, "op", "line", "range"),
        evidence=f"{starved:.1%} of the kernels start within 10 us of their launch; "
        + _host_evidence(facts, by_cause)
        + (f"; each step launches the same {repeats} kernels" if repeats else ""),
        remedy=f'{graph}(mode="reduce-overhead") replays a CUDA graph; optimizers with fused=True '
        "or foreach=True; a larger batch",
        confidence="medium",
        why="a graph needs static shapes and no synchronisation inside",
        idle_ns=by_cause,
    )


@rule("host-bound", least=0.03)
def host_bound(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for Python code and operators on the host."""
    ns = facts.idle.mean("host-bound")
    if not ns:
        return
    yield Finding(
        what="The GPU waits for Python code between launches.",
        where=_places(facts, ("host-bound",), "line", "layer", "op", "range"),
        evidence=_host_evidence(facts, {"host-bound": ns}),
        remedy="move this host work out of the step or to another thread; torch.compile removes "
        "the overhead of Python",
        confidence="medium",
        why="the recorder itself slows down the host",
        idle_ns={"host-bound": ns},
    )


def _host_evidence(facts: Facts, by_cause: Mapping[str, float]) -> str:
    """The same, and what remains without the time of the recorder."""
    recorded = _evidence(facts, *by_cause)
    return "; ".join(
        filter(None, [recorded, without_recorder(facts.profile, facts.steps, by_cause)])
    )


def _evidence(facts: Facts, *causes: str) -> str:
    """The idle time of some causes, its spread over steps and its gaps."""
    idle = facts.idle
    of_steps = np.sum([idle.of_windows(cause) for cause in causes], axis=0)
    own = idle.is_mainly(*causes)
    length = (idle.gaps.end - idle.gaps.start)[own]
    parts = [f"{quantity(round(float(of_steps.mean())), 'ns')} idle {facts.per_step}"]
    if len(causes) > 1:
        each = [f"{name} {quantity(round(idle.mean(name)), 'ns')}" for name in causes]
        parts[0] += f" ({', '.join(each)})"
    if facts.has_steps and len(of_steps) >= _SPREAD:
        low, middle, high = np.percentile(of_steps, [0, 50, 100]).round().astype(np.int64).tolist()
        parts.append(
            f"median {quantity(middle, 'ns')}, {quantity(low, 'ns')} to {quantity(high, 'ns')}"
        )
    if len(length):
        count = len(length) / facts.n_steps
        gaps = "1 gap" if count == 1 else f"{count:.4g} gaps"
        parts.append(f"{gaps}, the longest {quantity(int(length.max()), 'ns')}")
    return "; ".join(parts)


_SPREAD: Final = 3  # steps
_LEAST: Final = 0.1  # of the time of a cause; places below are not named


def _places(facts: Facts, causes: tuple[str, ...], *names: str) -> str:
    """Where most of some causes is, with shares of their time."""
    rows = facts.idle.is_mainly(*causes)
    found = []
    for name in names:
        top = [each for each in facts.idle.top(name, rows) if each[1] >= _LEAST]
        if top:
            found.append(", ".join(f"{text} {share:.0%}" for text, share in top))
    return "; ".join(found)


def _names(facts: Facts, causes: tuple[str, ...], place: str) -> list[str]:
    """The places that take most of some causes, without shares."""
    rows = facts.idle.is_mainly(*causes)
    return [text for text, share in facts.idle.top(place, rows) if share >= _LEAST]
