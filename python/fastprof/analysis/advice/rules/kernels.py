"""Rules on kernels: registers the functions of this folder that work on groups of equal calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastprof.analysis.advice.calls import CallFinding, CallGroups
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.advice.rules import (
    attention,
    chains,
    far_from_roof,
    gradients,
    layout,
    optimizer,
    tensor_cores,
)
from fastprof.ops.tensor_cores import fp32_unit
from fastprof.profile.program import TRAINS, WITH_OPERATORS


def _need_ops(facts: Facts) -> None:
    if not facts.calls.has_ops:
        raise CannotJudge(
            "no operators in the file: record with torch.profiler, or emit_nvtx under nsys"
        )


def _need_shapes(facts: Facts) -> None:
    _need_ops(facts)
    if not facts.calls.has_shapes:
        raise CannotJudge("no shapes in the file: record with record_shapes=True")


def _need_peaks(facts: Facts) -> None:
    why = [each.why for each in facts.devices.values() if each.why]
    if why or not facts.devices:
        raise CannotJudge(f"{why[0] if why else 'no GPU work'}; --gpu NAME gives the peaks")


def _need_name(facts: Facts) -> None:
    if not any(fp32_unit(each.name or "") for each in facts.devices.values()):
        raise CannotJudge("the file does not name a known GPU: --gpu NAME names it")


def _findings(facts: Facts, found: Iterable[CallFinding]) -> Iterator[Finding]:
    return (each.finding(facts.calls) for each in found)


@rule("no-tensor-cores", least=0.03)
def _no_tensor_cores(facts: Facts) -> Iterator[Finding]:
    """Products in fp32 on a GPU with tensor cores."""
    _need_name(facts)
    yield from _findings(facts, facts.calls.judged(tensor_cores.no_tensor_cores))


@rule("bad-shape", least=0.02, programs=WITH_OPERATORS)
def _bad_shape(facts: Facts) -> Iterator[Finding]:
    """Sizes that tensor cores cannot use well."""
    _need_shapes(facts)
    _need_peaks(facts)
    yield from _findings(facts, facts.calls.judged(tensor_cores.bad_shape))


@rule("unfused-attention", least=0.03, programs=WITH_OPERATORS)
def _unfused_attention(facts: Facts) -> Iterator[Finding]:
    """Attention that writes its scores to memory."""
    _need_shapes(facts)
    yield from _findings(facts, facts.calls.judged(attention.unfused_attention))


@rule("layout", least=0.02, programs=WITH_OPERATORS)
def _layout(facts: Facts) -> Iterator[Finding]:
    """Transposes around convolutions."""
    yield from _findings(facts, facts.calls.judged(layout.layout))


@rule("autocast-casts", least=0.02, programs=WITH_OPERATORS)
def _autocast_casts(facts: Facts) -> Iterator[Finding]:
    """Casts of operands in each call."""
    _need_ops(facts)
    yield from _findings(facts, facts.calls.judged(layout.autocast_casts))


@rule("copies-in-model", least=0.03, programs=WITH_OPERATORS)
def _copies_in_model(facts: Facts) -> Iterator[Finding]:
    """Copies and casts that the code of the model requests."""
    _need_ops(facts)
    yield from _findings(facts, facts.calls.judged(layout.copies_in_model))


@rule("optimizer-loop", least=0.01, programs=TRAINS)
def _optimizer_loop(facts: Facts) -> Iterator[Finding]:
    """An optimizer that launches kernels for each parameter."""
    _need_ops(facts)
    yield from _findings(facts, facts.calls.judged(optimizer.optimizer_loop))


@rule("elementwise-chain", least=0.01, programs=WITH_OPERATORS)
def _elementwise_chain(facts: Facts) -> Iterator[Finding]:
    """Elementwise calls in succession that one kernel can do."""
    _need_shapes(facts)
    _need_peaks(facts)
    yield from _findings(facts, facts.calls.judged(chains.elementwise_chain))


@rule("small-grid", least=0.03)
def _small_grid(facts: Facts) -> Iterator[Finding]:
    """Products that use few multiprocessors."""
    if not any(each.sms for each in facts.devices.values()):
        raise CannotJudge("the multiprocessors of the GPU are unknown: --gpu NAME names it")
    yield from _findings(facts, facts.calls.judged(far_from_roof.small_grid))


@rule("dead-gradient", least=0.01, programs=TRAINS)
def _dead_gradient(facts: Facts) -> Iterator[Finding]:
    """Gradients of input images."""
    _need_shapes(facts)
    yield from _findings(facts, facts.calls.judged(gradients.dead_gradient))


@rule("embedding-gradient", least=0.01, programs=TRAINS)
def _embedding_gradient(facts: Facts) -> Iterator[Finding]:
    """Dense gradients of large embeddings."""
    _need_shapes(facts)
    yield from _findings(facts, facts.calls.judged(gradients.embedding_gradient))


_SPECIFIC: tuple[Callable[[CallGroups], list[CallFinding]], ...] = (
    tensor_cores.no_tensor_cores,
    tensor_cores.bad_shape,
    attention.unfused_attention,
    layout.layout,
    layout.autocast_casts,
    layout.copies_in_model,
    chains.elementwise_chain,
    far_from_roof.small_grid,
    gradients.dead_gradient,
    gradients.embedding_gradient,
)


@rule("far-from-roof", least=0.02, programs=WITH_OPERATORS)
def _far_from_roof(facts: Facts) -> Iterator[Finding]:
    """Operators far from the peak rates without a more specific finding."""
    _need_shapes(facts)
    _need_peaks(facts)
    calls = facts.calls
    claimed = {
        part
        for function in _SPECIFIC
        for each in calls.judged(function)
        for part, ns in each.saved.items()
        if ns > 0
    }
    yield from _findings(facts, far_from_roof.far_from_roof(calls, claimed))
