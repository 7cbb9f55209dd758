"""Gradients that nobody needs: of images, and of all rows of an embedding."""

from __future__ import annotations

from typing import Final

from fastprof.analysis.advice.calls import (
    CallFinding,
    CallGroup,
    CallGroups,
    CallOperand,
    operands,
    sizes,
)
from fastprof.analysis.advice.registry import call_rule
from fastprof.analysis.roofline.ideal import PRACTICAL
from fastprof.ops.kernels import classify
from fastprof.profile.program import TRAINS

_CHANNELS: Final = 4  # at most, of images
_SPARSE: Final = 4  # rows of the table by rows used, from which the gradient is mostly zeros


@call_rule("dead-gradient", least=0.01, programs=TRAINS, needs=("shapes",))
def dead_gradient(calls: CallGroups) -> list[CallFinding]:
    """The gradient of the input images, computed by the first convolution."""
    found = []
    for group in calls.groups:
        if group.dir != "bprop" or not 0 < sizes(group.shape).get("C", 0) <= _CHANNELS:
            continue
        parts = [part for part in group.parts if classify(part.name).layout == "dgrad"]
        if parts:
            time = sum(part.ns for part in parts)
            found.append(
                CallFinding(
                    "The first convolution computes the gradient of the images",
                    [group],
                    {part.id: part.ns for part in parts},
                    {"gpu_ns": time, "kernel": parts[0].kernel},
                    ("pass inputs with requires_grad=False, or x.detach()",),
                    "medium",
                    "gradients of images are used only by adversarial and generative training",
                )
            )
    return found


@call_rule("embedding-gradient", least=0.01, programs=TRAINS, needs=("shapes",))
def embedding_gradient(calls: CallGroups) -> list[CallFinding]:
    """Dense gradients of embeddings of which a step uses few rows."""
    return [each for each in map(_dense, calls.groups) if each is not None]


def _dense(group: CallGroup) -> CallFinding | None:
    tensors = operands(group.shape)
    if group.op != "embedding" or group.dir != "bprop" or len(tensors) < 2:
        return None
    table = max(tensors, key=lambda each: (len(each.shape) == 2, each.elements))
    rows = min(tensors, key=lambda each: each is table).elements
    if table.shape[0] < _SPARSE * rows:
        return None
    target = _scatter_ns(group, table, rows)
    if target >= group.ns:
        return None
    return CallFinding(
        f"The gradient of an embedding of {table.shape[0]} rows is dense, and a step uses at most "
        f"{rows}",
        [group],
        {part.id: part.ns * (1 - target / group.ns) for part in group.parts},
        {"gpu_ns": group.ns, "attainable_ns": target},
        (
            "torch.nn.Embedding(..., sparse=True) with torch.optim.SparseAdam or SGD",
            "not with weights shared with the output layer",
        ),
        "medium",
        "the optimizer's pass over all rows is not included",
    )


def _scatter_ns(group: CallGroup, table: CallOperand, rows: int) -> float:
    """ns a step to read and write the gradients of the used rows."""
    bandwidth = (group.device.bandwidth or 0.0) * PRACTICAL[1]
    moved = 2 * group.calls * rows * table.shape[1] * 4
    return moved / bandwidth * 1e9 if bandwidth else 0.0
