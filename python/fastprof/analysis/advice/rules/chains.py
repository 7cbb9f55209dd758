"""Elementwise calls in succession, each of which reads and writes memory."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    operands,
    spread,
)
from fastprof.analysis.advice.registry import call_rule
from fastprof.profile.program import SERVING, WITH_OPERATORS, Program

_PHASES: Final = frozenset({"forward", "recompute"})
_NAMES: Final = 6  # most operators in a sentence


@call_rule("elementwise-chain", least=0.01, programs=WITH_OPERATORS, needs=("shapes", "peaks"))
def elementwise_chain(calls: CallGroups) -> list[CallFinding]:
    """Runs of elementwise calls with one shape in one layer, of which the memory is the limit."""
    found = []
    chain: list[CallGroup] = []
    for group in [*calls.groups, None]:
        if group is not None and chain and _follows(chain[-1], group):
            chain.append(group)
            continue
        if len(chain) > 1 and (each := _finding(calls.program, chain)) is not None:
            found.append(each)
        chain = [group] if group is not None and _is_link(group) else []
    return found


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
    time, target = sum(each.ns for each in chain), chain[0].ideal_ns
    if time <= target:
        return None
    names = [each.op or "" for each in chain]
    text = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
    return CallFinding(
        f"Each call of {text} reads and writes the same tensor in memory",
        chain,
        spread((part for each in chain for part in each.parts), time - target),
        {"gpu_ns": time, "one fused kernel_ns": target},
        ("one fused operator",)
        if program.is_compiled or program.kind == SERVING
        else ("torch.compile of this layer", "or one fused operator"),
        "medium",
        "the calls follow each other with one shape; the data flow is not recorded",
        effect="One fused kernel would save {saving}.",
    )
