"""Rules on the causes of idle time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.host_states import SETUP, State
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.idle_overview import starved_share
from fastprof.model.quantity import quantity

__all__: list[str] = []

_LAUNCH_NS: Final = 50_000  # an operator is launched in this time; longer gaps have other host work
_SEVERAL: Final = 3  # steps; what lasts for fewer may be the start
_STARVED: Final = 0.1  # of the kernels; with fewer, the queue of the GPU hides the launches


@rule("data-loading", least=0.05)
def data_loading(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for batches."""
    ns, causes = facts.idle.mean("data loading"), ("data loading",)
    if not ns:
        return
    ranges = _names(facts, causes, "range")
    yield Finding(
        what="The GPU waits for the data loader.",
        where=_places(facts, causes, "line", "range"),
        evidence=_evidence(facts, *causes),
        remedy=_loader_remedy(ranges),
        confidence="high",
        why="the thread that launches the next work is in the loader during this time",
        idle_ns={"data loading": ns},
        cause=f"The GPU waits {{time}} for the data loader{_at(facts, causes, 'line')}.",
        effect=f"{_loader_effect(ranges)} would save {{saving}}.",
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


def _loader_effect(ranges: list[str]) -> str:
    """What saves the time of a loader with or without worker processes."""
    more = any("MultiProcessing" in each for each in ranges)
    return "Batches that are ready in time" if more else "Workers"


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
        cause=f"The GPU waits {{time}} while the host {_DOES[most]}{_at(facts, _SETUP, 'call')}.",
        effect=_setup_effect(facts, most),
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


def _setup_effect(facts: Facts, most: str) -> str:
    """What remains to be seen: nobody saves the start of a program."""
    if not facts.has_steps:
        return "This may be start-up: record after the first steps, or mark steps with --steps."
    first_use = (State.COMPILATION, State.CODE_LOADING, State.CREATION)
    if most in {CAUSES[each] for each in first_use} and len(facts.rows) < _SEVERAL:
        return "This happens at first use: record later steps to see what remains."
    return ""


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
        cause=f"The host waits for the GPU{_at(facts, causes, 'line', 'op', 'call')}, which then "
        "waits {time} for new work.",
        effect="Where the program can do without these waits, the host would run ahead and save "
        "{saving}.",
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
    longer = facts.idle.first("host-bound", _LAUNCH_NS)
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
        + _evidence(facts, *causes)
        + (f"; {quantity(round(longer), 'ns')} of longer gaps, 50 us of each" if longer else "")
        + (f"; each step launches the same {repeats} kernels" if repeats else ""),
        remedy=f'{graph}(mode="reduce-overhead") replays a CUDA graph; optimizers with fused=True '
        "or foreach=True; a larger batch",
        confidence="medium",
        why="a graph needs static shapes and no synchronisation inside",
        idle_ns={**by_cause, "host-bound": longer},
        cause="The GPU waits {time} for launches: its kernels take less time than the host takes "
        "to launch them.",
        effect="A CUDA graph would save {saving}.",
    )


@rule("host-bound", least=0.03)
def host_bound(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for Python code and operators on the host."""
    causes = ("host-bound",)
    ns = facts.idle.mean(*causes) - facts.idle.first(*causes, _LAUNCH_NS)
    if ns <= 0:
        return
    yield Finding(
        what="The GPU waits for Python code between launches.",
        where=_places(facts, causes, "line", "layer", "op", "range"),
        evidence=f"{_evidence(facts, *causes)}; {quantity(round(ns), 'ns')} without 50 us of each "
        "gap, in which the host launches an operator",
        remedy="move this host work out of the step or to another thread; torch.compile removes "
        "the overhead of Python",
        confidence="medium",
        why="the profiler itself slows down the host",
        idle_ns={"host-bound": ns},
        cause=f"The GPU waits {{time}} for Python code between "
        f"launches{_at(facts, causes, 'line', 'layer', 'op')}.",
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
_MOSTLY: Final = 0.5  # of the time of a cause, from which a place is its place
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


def _at(facts: Facts, causes: tuple[str, ...], *names: str) -> str:
    """` (resnet.py:44)`: the first kind of place of which one takes most; or nothing."""
    rows = facts.idle.is_mainly(*causes)
    for name in names:
        for text, share in facts.idle.top(name, rows, most=1):
            if share >= _MOSTLY:
                return f" ({text})"
    return ""


def _names(facts: Facts, causes: tuple[str, ...], place: str) -> list[str]:
    """The places that take most of some causes, without shares."""
    rows = facts.idle.is_mainly(*causes)
    return [text for text, share in facts.idle.top(place, rows) if share >= _LEAST]
