"""Rules on memory, on the choice of algorithms and on phases of a step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int32
from fastprof.model.numbers import quantity
from fastprof.profile.program import INFERENCE, OTHER, SERVING, TRAINS, USES_TORCH, WITH_OPERATORS

_HEADROOM: Final = 0.5  # of the GPU's memory
_EFFICIENT: Final = 0.5  # of the roofline
_LARGER: Final = {
    SERVING: "more requests in a batch (vLLM max_num_seqs and gpu_memory_utilization, SGLang "
    "--max-running-requests and --mem-fraction-static)",
    OTHER: "increase the batch size until the peak is near the GPU's memory",
}
_CHANGES: Final = {
    INFERENCE: "a larger batch takes longer",
    SERVING: "a larger batch takes longer",
    OTHER: "a larger batch changes the training",
}
_CONVOLVES: Final = 0.1  # of a step
_BENCHMARK: Final = 9  # argument of aten::_convolution
_N_ARGUMENTS: Final = 13


@rule("memory-headroom", programs=WITH_OPERATORS, needs=("times",))
def memory_headroom(facts: Facts) -> Iterator[Finding]:
    """The GPU has memory for a larger batch."""
    if not len(facts.profile.memory_events):
        raise CannotJudge(
            "no memory events: record with torch.profiler.profile(profile_memory=True)"
        )
    from fastprof.analysis.memory.report import memory
    from fastprof.analysis.roofline.report import roofline

    efficiency = roofline(facts.profile).total.get("peak_share")
    if efficiency is None:
        raise CannotJudge("efficiency unknown: record shapes, and name the GPU with --gpu")
    memories = memory(facts.profile).facts["memories"]
    for number, device in facts.devices.items():
        own = [memory for memory in memories if memory["memory"] == f"GPU {number}"]
        if not own or not device.memory or efficiency >= _EFFICIENT:
            continue
        peak = own[0]["reserved_at_peak_bytes"] or own[0]["peak_bytes"]
        if not peak or peak >= _HEADROOM * device.memory:
            continue
        yield Finding(
            what=f"The GPU has memory for a larger batch: {peak / device.memory:.0%} is used.",
            where=f"GPU {number}",
            evidence=f"peak {quantity(peak, 'bytes')} of {quantity(device.memory, 'bytes')}; "
            f"kernels reach {efficiency:.0%} of the roofline",
            remedy=facts.program.choose(_LARGER),
            confidence="low",
            why=facts.program.choose(_CHANGES),
        )


@rule("cudnn-benchmark", programs=USES_TORCH)
def cudnn_benchmark(facts: Facts) -> Iterator[Finding]:
    """Convolutions without a search for the fastest algorithm."""
    rows = facts.kernels(**{"class": "convolution"})
    ns = facts.own_ns(rows)
    if ns < _CONVOLVES * facts.step_ns:
        return
    flags = _benchmark_flags(facts)
    if not flags:
        raise CannotJudge(
            "values of arguments not recorded: profile(record_shapes=True) of PyTorch 2.1 or later"
        )
    if any(flags):
        return
    yield Finding(
        what="Convolutions run without a search for the fastest algorithm.",
        where=", ".join(f"{name} {share:.0%}" for name, share in facts.top("op", rows)),
        evidence=f"benchmark=False in all convolutions; {quantity(round(ns), 'ns')} "
        f"{facts.per_step}, {ns / facts.step_ns:.0%}",
        remedy="torch.backends.cudnn.benchmark = True, if shapes repeat",
        confidence="low",
        why="the gain depends on the shapes",
    )


def _benchmark_flags(facts: Facts) -> list[bool]:
    """The recorded values of `benchmark`, one per distinct call."""
    result = []
    for meaning in facts.profile.ranges.meanings:
        call = meaning.call
        if call is None or call.op != "_convolution" or len(call.args) != _N_ARGUMENTS:
            continue
        value = call.args[_BENCHMARK].value
        result += [value] if isinstance(value, bool) else []
    return result


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
    result: Bools = phase.ids[after] == number
    return result
