"""An optimizer that launches kernels for each parameter."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.advice.calls import CallFinding, CallGroups, KernelPart, by_time
from fastprof.analysis.advice.registry import call_rule
from fastprof.profile.program import TRAINS

_KERNELS: Final = 50  # a step
_SHORT: Final = 10_000  # ns
_ONE_BY_ONE: Final = frozenset({"elementwise", "copy", "reduction"})


@call_rule("optimizer-loop", least=0.01, programs=TRAINS, needs=("ops",), claims=False)
def optimizer_loop(calls: CallGroups) -> list[CallFinding]:
    """Many short kernels of the optimizer that foreach or fused kernels replace."""
    groups = [each for each in calls.groups if each.phase == "optimizer"]
    parts = [part for each in groups for part in each.parts if part.kind in _ONE_BY_ONE]
    n, time = sum(part.kernels for part in parts), sum(part.ns for part in parts)
    if n <= _KERNELS or time >= _SHORT * n:
        return []
    span = calls.optimizer_ns
    idle = max(span - sum(each.ns for each in groups), 0.0)
    return [
        CallFinding(
            f"The optimizer launches {n:.0f} short kernels, some for each parameter",
            by_time(each for each in groups if any(part in parts for part in each.parts)),
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
