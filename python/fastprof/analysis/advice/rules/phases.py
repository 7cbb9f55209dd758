"""Rules on phases of a step."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int32
from fastprof.model.quantity import quantity
from fastprof.profile.program import TRAINS


@rule("recompute", least=0.05, programs=TRAINS)
def recompute(facts: Facts) -> Iterator[Finding]:
    """Forward work that the backward pass repeats."""
    rows = facts.kernels(phase="recompute")
    ns = facts.own_ns(rows)
    if not ns:
        return
    yield Finding(
        what="Activation checkpointing repeats forward work in the backward pass.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("layer", rows)[:1]),
        evidence=f"{facts.count(rows):.4g} kernels, {quantity(round(ns), 'ns')} {facts.per_step}",
        remedy="checkpoint fewer layers if memory allows (torch.utils.checkpoint, fastprof memory "
        "shows the peak), or save the costly operators only "
        "(create_selective_checkpoint_contexts)",
        confidence="medium",
        why="without checkpoints, the activations need memory",
        kernels=rows,
        gpu_ns=ns,
        cause="Activation checkpointing repeats forward work for {time}.",
        effect="Without checkpoints, a step would take {saving} less, and more memory.",
    )


@rule("zero-grad", least=0.01, programs=TRAINS)
def zero_grad(facts: Facts) -> Iterator[Finding]:
    """Kernels that set gradients to zero."""
    rows = facts.kernels(phase="zero_grad")
    ns = facts.own_ns(rows)
    if not ns or facts.program.shares_gradients:  # None would cut a gradient from its buffer
        return
    after = _phase_after(facts, facts.idle.gaps.after)
    by_cause = facts.idle.by_cause(after)
    idle = sum(by_cause.values())
    yield Finding(
        what="zero_grad writes zeros into the gradients.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("line", rows)),
        evidence=f"{facts.count(rows):.4g} kernels, {quantity(round(ns), 'ns')} and "
        f"{quantity(round(idle), 'ns')} idle before them {facts.per_step}",
        remedy="optimizer.zero_grad(set_to_none=True), the default since PyTorch 2.0",
        confidence="high",
        why="gradients that are None need no kernel",
        idle_ns=by_cause,
        kernels=rows,
        gpu_ns=ns,
        cause="zero_grad writes zeros into the gradients: {time}, with waits for its launches.",
        effect="Gradients set to None would save {saving}.",
    )


def _phase_after(facts: Facts, after: Int32) -> Bools:
    """[gaps] Whether the next work sets gradients to zero."""
    phase = key_of(facts.profile, "phase")
    number = phase.values.index("zero_grad")
    found: Bools = phase.ids[after] == number
    return found
