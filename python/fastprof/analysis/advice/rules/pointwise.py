"""Pointwise kernels and copies of torch that take much of the time, also in succession."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fastprof._system.regex import regex
from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    KernelPart,
    by_time,
    claimed_by,
    operands,
    spread,
)
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import call_rule, rule
from fastprof.analysis.advice.rules.attention import unfused_attention
from fastprof.analysis.roofline.ideal import PRODUCTS
from fastprof.profile.program import OTHER, SERVING, TORCH, WITH_OPERATORS, Program

_SHARE: Final = 0.15  # of the time of kernels
_KERNELS: Final = 100  # a step
_SAVED: Final = 0.5  # of their time
_COMPILED: Final = {
    TORCH: "torch.compile(model) fuses them",
    SERVING: "the engine's compilation, or an implementation of the model with fused kernels",
    OTHER: "a compiler that fuses them",
}
_KINDS: Final = frozenset({"elementwise", "copy"})
_TORCH: Final = regex(r"at(?:::|_)native")
_MEANS: Final = regex(r"MeanOps")
# Functors of torch's kernels, by what they compute: all patterns of a line occur often.
_PATTERNS: Final = (
    ("RMSNorm", (r"pow_tensor_scalar", r"rsqrt_kernel", r"MeanOps")),
    ("rotary embedding", (r"neg_kernel", r"CatArray")),
    ("SiLU", (r"silu_kernel",)),
    ("SiLU", (r"sigmoid_kernel", r"MulFunctor")),
    ("GELU", (r"Gelu\w*Kernel|gelu",)),
    ("GELU", (r"tanh_kernel", r"pow_tensor_scalar")),
    ("dropout", (r"fused_dropout|masked_scale|bernoulli",)),
    ("softmax", (r"exp_kernel", r"MaxOps|max_functor", r"DivFunctor")),
    ("masking", (r"where_kernel|masked_fill",)),
)
_OFTEN: Final = 0.005  # of the kernels, for each pattern
_OF_TRANSFORMERS: Final = frozenset({"rotary embedding", "SiLU"})  # other models negate and concat
_LIGER: Final = frozenset({"RMSNorm", "rotary embedding", "SiLU"})
_TOP: Final = 3  # functors in the evidence
# The first that matches names the work of a kernel.
_FUNCTORS: Final = tuple(
    map(
        re.compile,
        (
            r"binary_internal::(\w+?)Functor",
            r"CUDAFunctor(?:OnSelf)?_(\w+)",
            r"(\w+?)_kernel_cuda",
            r"(?<!\w)(?!gpu_)(\w+?)_kernel_impl",
            r"(CatArray)",
            r"(\w+)(?:Functor|Ops)<",
        ),
    )
)


@rule("unfused-pointwise", least=0.03, programs=WITH_OPERATORS)
def _unfused_pointwise(facts: Facts) -> Iterator[Finding]:
    """Pointwise kernels and copies by the hundred that fused kernels replace."""
    yield from (finding.finding(facts.calls) for finding in unfused_pointwise(facts.calls))


def unfused_pointwise(calls: CallGroups) -> list[CallFinding]:
    """Pointwise kernels and copies of torch outside the optimizer, if they take much.

    Not those of attention that one kernel replaces.
    """
    claimed = claimed_by(calls, unfused_attention)
    members = [
        (group, part)
        for group in calls.groups
        for part in group.parts
        if part.id not in claimed and _fits(group, part)
    ]
    parts = sorted((part for _, part in members), key=lambda part: -part.ns)
    count, time = sum(part.kernels for part in parts), sum(part.ns for part in parts)
    if count < _KERNELS or time < _SHARE * calls.kernel_ns:
        return []
    names = _computed(parts)
    work = ", ".join(names) or "Much of the model"
    return [
        CallFinding(
            f"{work} run{'' if len(names) > 1 else 's'} as {count:.0f} pointwise kernels and "
            "copies that fused kernels replace",
            sorted(
                by_time({id(group): group for group, _ in members}.values()),
                key=lambda group: group.op is None,
            ),
            {part.id: part.ns * _SAVED for part in parts},
            {
                "gpu_ns": time,
                "of all kernels_share": time / calls.kernel_ns,
                "kernels": round(count),
                "most time": ", ".join(_functors(parts)),
            },
            _remedy(calls.program, names),
            "medium" if names else "low",
            "fused kernels are assumed to take half of the time: they pass over memory once",
            effect="Fused kernels would save {saving}.",
        )
    ]


def _fits(group: CallGroup, part: KernelPart) -> bool:
    """Whether a kernel is torch's, pointwise, and neither of the optimizer nor of a product."""
    is_pointwise = part.kind in _KINDS or (
        part.kind == "reduction" and _MEANS.search(part.name) is not None
    )
    is_of_product = part.is_helper and any(part.kind in PRODUCTS for part in group.parts)
    return (
        is_pointwise
        and not is_of_product
        and group.phase != "optimizer"
        and _TORCH.search(part.name) is not None
    )


def _computed(parts: list[KernelPart]) -> list[str]:
    """What the kernels compute together, by the functors in their names."""
    least = _OFTEN * sum(part.kernels for part in parts)
    counts = {
        word: sum(part.kernels for part in parts if re.search(word, part.name))
        for word in {word for _, words in _PATTERNS for word in words}
    }
    named = [name for name, words in _PATTERNS if all(counts[word] > least for word in words)]
    is_transformer = "RMSNorm" in named or counts["silu_kernel"] > least
    named = [name for name in named if is_transformer or name not in _OF_TRANSFORMERS]
    return list(dict.fromkeys(named))


def _functors(parts: list[KernelPart]) -> list[str]:
    """The functors with most time, with their count."""
    counts: dict[str, tuple[float, float]] = {}
    for part in parts:
        named = next(filter(None, (functor.search(part.name) for functor in _FUNCTORS)), None)
        name = named[1] if named else part.kernel
        ns, n = counts.get(name, (0.0, 0.0))
        counts[name] = ns + part.ns, n + part.kernels
    most = sorted(counts, key=lambda name: -counts[name][0])[:_TOP]
    return [f"{name} {counts[name][1]:.0f} x" for name in most]


def _remedy(program: Program, names: list[str]) -> tuple[str, ...]:
    if program.is_compiled and program.uses_torch:
        return (
            "these run outside of what the compiler fuses: TORCH_LOGS=graph_breaks,recompiles "
            "names the places; fullgraph=True",
        )
    compiled = program.choose(_COMPILED)
    fused = [name for name in names if name in _LIGER]
    if not fused or not program.uses_torch:
        return (compiled,)
    return (
        compiled,
        f"or fused kernels for {', '.join(fused)} (torch.nn.functional.rms_norm, Liger Kernel)",
    )


_PHASES: Final = frozenset({"forward", "recompute"})
_NAMES: Final = 6  # most operators in a sentence


@call_rule("elementwise-chain", least=0.01, programs=WITH_OPERATORS, needs=("shapes", "peaks"))
def elementwise_chain(calls: CallGroups) -> list[CallFinding]:
    """Runs of elementwise calls with one shape in one layer, of which the memory is the limit."""
    result = []
    chain: list[CallGroup] = []
    for group in [*calls.groups, None]:
        if group is not None and chain and _follows(chain[-1], group):
            chain.append(group)
            continue
        if len(chain) > 1 and (each := _finding(calls.program, chain)) is not None:
            result.append(each)
        chain = [group] if group is not None and _is_link(group) else []
    return result


def _is_link(group: CallGroup) -> bool:
    """Whether a call is elementwise, in a forward pass, and its time at the roof is known."""
    return (
        group.phase in _PHASES
        and group.dir != "bprop"
        and all(part.kind == "elementwise" and not part.is_helper for part in group.parts)
        and bool(operands(group.shape))
        and group.has_ideal
        and group.ideal_ns > 0
    )


def _follows(before: CallGroup, after: CallGroup) -> bool:
    """Whether a call comes directly after another, in the same place and as often."""
    keys = ("phase", "line", "layer")
    return (
        _is_link(after)
        and before.device is after.device
        and all(getattr(before, key) == getattr(after, key) for key in keys)
        and before.calls == after.calls
        and after.first == before.first + max(round(before.kernels_per_call), 1)
        and operands(before.shape)[0].shape == operands(after.shape)[0].shape
    )


def _finding(program: Program, chain: list[CallGroup]) -> CallFinding | None:
    time, target = sum(call_group.ns for call_group in chain), chain[0].ideal_ns
    if time <= target:
        return None
    names = [call_group.op or "" for call_group in chain]
    text = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
    return CallFinding(
        f"Each call of {text} reads and writes the same tensor in memory",
        chain,
        spread((part for call_group in chain for part in call_group.parts), time - target),
        {"gpu_ns": time, "one fused kernel_ns": target},
        ("one fused operator",)
        if program.is_compiled or program.kind == SERVING
        else ("torch.compile of this layer", "or one fused operator"),
        "medium",
        "the calls follow each other with one shape; the data flow is not recorded",
        effect="One fused kernel would save {saving}.",
    )
