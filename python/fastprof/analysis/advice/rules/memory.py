"""Rules on memory and on the choice of algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.model.quantity import quantity
from fastprof.profile.program import INFERENCE, OTHER, SERVING, USES_TORCH, WITH_OPERATORS

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
        own = [each for each in memories if each["memory"] == f"GPU {number}"]
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
    found = []
    for meaning in facts.profile.ranges.meanings:
        call = meaning.call
        if call is None or call.op != "_convolution" or len(call.args) != _N_ARGUMENTS:
            continue
        value = call.args[_BENCHMARK].value
        found += [value] if isinstance(value, bool) else []
    return found
