"""Gradients filled with zeros or needed by nobody, and optimizers with many kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._system.regex import regex
from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    CallOperand,
    KernelPart,
    by_time,
    operands,
    sizes,
)
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import call_rule, rule
from fastprof.analysis.grouping import group, numbers, texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import PRACTICAL
from fastprof.model.arrays import Bools, Int64
from fastprof.model.numbers import quantity
from fastprof.ops.kernels import classify
from fastprof.profile.program import TRAINS

_RUN: Final = 16  # fills in succession on a stream; gradients of a model are cleared together
_FILLS: Final = 32  # a step
_ZEROS: Final = regex(r"FillFunctor|multi_tensor_apply.*Zero")
_STREAM: Final = ("process", "device", "stream")


@rule("gradient-fills", least=0.01, programs=TRAINS, needs=("times",))
def gradient_fills(facts: Facts) -> Iterator[Finding]:
    """Gradients that are filled with zeros one by one."""
    # Without steps, the model is built; None would cut a gradient from its buffer.
    if not facts.has_steps or facts.program.shares_gradients:
        return
    rows, idle = _fills_in_succession(facts)
    count = len(rows) / facts.n_steps
    if count < _FILLS:
        return
    ns = facts.own_ns(rows)
    top = facts.top("kernel", rows, most=1)
    yield Finding(
        what=f"A step fills {count:.0f} tensors with zeros, one after the other.",
        where="; ".join(name for name, _ in facts.top("range", rows, most=1)),
        evidence=f"{quantity(round(ns), 'ns')} {facts.per_step} in runs of memsets and fills"
        + (f", {top[0][0]} {top[0][1]:.0%}" if top else ""),
        remedy="optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0",
        confidence="medium",
        why="the names of the kernels: gradients are what a step clears together",
        idle_ns={"launch-bound": idle} if idle else {},
        kernels=rows,
        gpu_ns=ns,
        effect="Gradients set to None would save {saving}.",
    )


def _fills_in_succession(facts: Facts) -> tuple[Int64, float]:
    """Rows of fills in long runs of them, and the idle time of the stream within, ns per step."""
    profile = facts.profile
    is_fill = key_of(profile, "class").fits("memset".__eq__)
    is_fill |= texts(profile, "name").fits(lambda name: bool(_ZEROS.search(name or "")))
    is_fill &= facts.is_counted & ~key_of(profile, "phase").fits("zero_grad".__eq__)
    if not is_fill.any():
        return np.zeros(0, np.int64), 0.0
    streams = group([key_of(profile, name) for name in _STREAM], len(profile)).ids
    start, end = numbers(profile, "start"), numbers(profile, "end")
    order = np.lexsort((start, streams))
    begins = _run_begins(is_fill[order], streams[order])
    run = np.cumsum(begins) - 1
    is_long = np.bincount(run)[run] >= _RUN
    chosen = is_long & is_fill[order]
    rows = order[chosen]
    first = np.flatnonzero(np.diff(run[chosen], prepend=-1))
    if not len(first):
        return rows, 0.0
    spans = np.append(first[1:], len(rows)) - 1
    busy = float((end[rows] - start[rows]).sum())
    idle = float((end[rows[spans]] - start[rows[first]]).sum()) - busy
    return np.sort(rows), max(idle, 0.0) / facts.n_steps


def _run_begins(is_fill: Bools, stream: np.ndarray) -> Bools:
    """Where a run of fills, or of other work, begins."""
    begins: Bools = np.ones(len(is_fill), bool)
    begins[1:] = (is_fill[1:] != is_fill[:-1]) | (stream[1:] != stream[:-1])
    return begins


_UPDATES: Final = 50  # kernels a step, from which an update is one by one
_ONE_BY_ONE: Final = regex(r"addcdiv")
_OF_UPDATE: Final = regex(r"addcdiv|addcmul|lerp_|sqrt_kernel(?!_impl_r)")
_FOREACH: Final = regex(r"multi_tensor_apply")
_FUSED: Final = regex(r"Fused|adam_kernel|Adam\w*Functor|LAMB|Zero", re.IGNORECASE)
_SHARE: Final = 0.03  # of the time of kernels
_FOREACH_SAVED: Final = 0.5


@rule("unfused-optimizer", least=0.01, programs=TRAINS)
def _optimizer_passes(facts: Facts) -> Iterator[Finding]:
    """Optimizers that pass over the parameters several times."""
    yield from (
        optimizer_pass.finding(facts.calls) for optimizer_pass in optimizer_passes(facts.calls)
    )


def optimizer_passes(calls: CallGroups) -> list[CallFinding]:
    """Updates of each parameter by itself, where the operators are unknown, and foreach updates."""
    loops = [
        part
        for group_ in calls.groups
        if group_.op is None
        for part in group_.parts
        if part.kind == "elementwise" and _OF_UPDATE.search(part.name)
    ]
    steps = sum(part.kernels for part in loops if _ONE_BY_ONE.search(part.name))
    result = []
    if steps >= _UPDATES:
        result.append(
            _update(
                calls,
                loops,
                f"The optimizer launches kernels for each of {steps:.0f} parameters",
                0.5,
                "named kernels only; fused kernels are assumed to take half of the time",
            )
        )
    passes = [
        part
        for group_ in calls.groups
        for part in group_.parts
        if _FOREACH.search(part.name) and not _FUSED.search(part.name)
    ]
    if sum(part.ns for part in passes) >= _SHARE * max(calls.kernel_ns, 1.0):
        result.append(
            _update(
                calls,
                passes,
                "The optimizer makes a pass for each operation (foreach)",
                _FOREACH_SAVED,
                "a fused step reads and writes each tensor once: assumed to take half of the time",
            )
        )
    return result


def _update(
    calls: CallGroups, parts: list[KernelPart], what: str, share: float, why: str
) -> CallFinding:
    time, ids = sum(part.ns for part in parts), {part.id for part in parts}
    return CallFinding(
        what,
        by_time(
            call_group
            for call_group in calls.groups
            if any(part.id in ids for part in call_group.parts)
        ),
        {part.id: part.ns * share for part in parts},
        {
            "gpu_ns": time,
            "of all kernels_share": time / max(calls.kernel_ns, 1.0),
            "kernels": sum(part.kernels for part in parts),
            "kernel": max(parts, key=lambda part: part.ns).kernel,
        },
        ("the optimizer's argument fused=True, for example torch.optim.AdamW(params, fused=True)",),
        "low",
        why,
        effect="A fused optimizer would save {saving}.",
    )


_CHANNELS: Final = 4  # at most, of images
_SPARSE: Final = 4  # rows of the table by rows used, from which the gradient is mostly zeros


@call_rule("dead-gradient", least=0.01, programs=TRAINS, needs=("shapes",))
def dead_gradient(calls: CallGroups) -> list[CallFinding]:
    """The gradient of the input images, computed by the first convolution."""
    result = []
    for call in calls.groups:
        if call.dir != "bprop" or not 0 < sizes(call.shape).get("C", 0) <= _CHANNELS:
            continue
        parts = [part for part in call.parts if classify(part.name).layout == "dgrad"]
        if parts:
            time = sum(part.ns for part in parts)
            result.append(
                CallFinding(
                    "The first convolution computes the gradient of the images",
                    [call],
                    {part.id: part.ns for part in parts},
                    {"gpu_ns": time, "kernel": parts[0].kernel},
                    ("pass inputs with requires_grad=False, or x.detach()",),
                    "medium",
                    "gradients of images are used only by adversarial and generative training",
                )
            )
    return result


@call_rule("embedding-gradient", least=0.01, programs=TRAINS, needs=("shapes",))
def embedding_gradient(calls: CallGroups) -> list[CallFinding]:
    """Dense gradients of embeddings of which a step uses few rows."""
    return [finding for finding in map(_dense, calls.groups) if finding is not None]


def _dense(call: CallGroup) -> CallFinding | None:
    tensors = operands(call.shape)
    if call.op != "embedding" or call.dir != "bprop" or len(tensors) < 2:
        return None
    table = max(tensors, key=lambda tensor: (len(tensor.shape) == 2, tensor.elements))
    rows = min(tensors, key=lambda tensor: tensor is table).elements
    if table.shape[0] < _SPARSE * rows:
        return None
    target = _scatter_ns(call, table, rows)
    if target >= call.ns:
        return None
    return CallFinding(
        f"The gradient of an embedding of {table.shape[0]} rows is dense, and a step uses at most "
        f"{rows}",
        [call],
        {part.id: part.ns * (1 - target / call.ns) for part in call.parts},
        {"gpu_ns": call.ns, "attainable_ns": target},
        (
            "torch.nn.Embedding(..., sparse=True) with torch.optim.SparseAdam or SGD",
            "not with weights shared with the output layer",
        ),
        "medium",
        "the optimizer's pass over all rows is not included",
    )


def _scatter_ns(call: CallGroup, table: CallOperand, rows: int) -> float:
    """ns a step to read and write the gradients of the used rows."""
    bandwidth = (call.device.bandwidth or 0.0) * PRACTICAL[1]
    moved = 2 * call.calls * rows * table.shape[1] * 4
    return moved / bandwidth * 1e9 if bandwidth else 0.0


_KERNELS: Final = 50  # a step
_SHORT: Final = 10_000  # ns
_UPDATE_ONE_BY_ONE: Final = frozenset({"elementwise", "copy", "reduction"})


@call_rule("optimizer-loop", least=0.01, programs=TRAINS, needs=("ops",), claims=False)
def optimizer_loop(calls: CallGroups) -> list[CallFinding]:
    """Many short kernels of the optimizer that foreach or fused kernels replace."""
    groups = [call_group for call_group in calls.groups if call_group.phase == "optimizer"]
    parts = [
        part
        for call_group in groups
        for part in call_group.parts
        if part.kind in _UPDATE_ONE_BY_ONE
    ]
    n, time = sum(part.kernels for part in parts), sum(part.ns for part in parts)
    if n <= _KERNELS or time >= _SHORT * n:
        return []
    span = calls.optimizer_ns
    idle = max(span - sum(call_group.ns for call_group in groups), 0.0)
    return [
        CallFinding(
            f"The optimizer launches {n:.0f} short kernels, some for each parameter",
            by_time(
                call_group
                for call_group in groups
                if any(part in parts for part in call_group.parts)
            ),
            {part.id: max(part.ns - _at_roof(part), 0.0) for part in parts},
            {"gpu_ns": time, "mean_ns": time / n, "first to last kernel_ns": max(span, time)},
            (
                "the optimizer's argument fused=True, for example "
                "torch.optim.AdamW(params, fused=True)",
                "or foreach=True",
            ),
            "medium",
            "the GPU's idle time between the kernels disappears only if the host is not the limit",
            {"launch-bound": idle},
            effect="A fused optimizer would save {saving}.",
        )
    ]


def _at_roof(part: KernelPart) -> float:
    """ns a step at the bandwidth; a kernel of unknown bytes is small and takes no time."""
    return min(part.ideal_ns, part.ns)
