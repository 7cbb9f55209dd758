"""Parses torch's own ranges: operators, autograd nodes, backward operators."""

from __future__ import annotations

import re

from fastprof._system.regex import regex
from fastprof.model.call import Arg, Call, Tensor
from fastprof.model.markers.meaning import EVALUATE, Kind, Meaning

_SIZES = ", sizes = ["
_SHAPE = regex(r"\[((?:[0-9]{1,19}(?:, [0-9]{1,19})*)?)\]")

# Operators of these namespaces are recognised without a suffix; others require one.
_TORCH_NAMESPACES = frozenset(
    {"aten", "prim", "prims", "quantized", "torch", "torchaudio", "torchvision"}
    | {"c10d", "c10d_functional", "_c10d_functional", "nccl"}
)
_QUALIFIED = regex(r"([a-z_0-9]+)(?:::[A-Za-z_0-9.]+)+\Z")

# Autograd nodes whose names do not end in Backward.
_AUTOGRAD_NODE = regex(
    r"torch::autograd::(?:AccumulateGrad|CopySlices|CopyBackwards|GraphRoot|CppNode<.*>)\Z",
    re.DOTALL,
)
BACKWARD_NODE = regex(r"Backward[0-9]*\Z")  # SumBackward1
_BACKWARD_OP = regex(r"[A-Za-z0-9]_backward(?![A-Za-z])")  # aten::_softmax_backward_data
_OPERATOR = regex(r"[\w.:]+\Z")
_RECOMPUTE_NAME = regex(r"(?:[\w.]+::)*CheckpointFunctionBackward[0-9]*\Z")
BACKWARD_WORD = regex(r"Backward|_backward")


def cut_sizes(label: str) -> tuple[str, tuple[Arg, ...] | None]:
    """Split a label at its trailing `, sizes = [..]`: name, and one tensor per size or None."""
    at = label.rfind(_SIZES) if label.endswith("]") else -1
    if at < 0:
        return label, None
    place, end = at + len(_SIZES), len(label) - 1
    args = []
    while place < end:
        match = _SHAPE.match(label, place, end)
        if match is None or not (match.end() == end or label.startswith(", [", match.end())):
            return label, None
        shape = tuple(int(extent) for extent in match[1].split(", ") if extent)
        args.append(Arg("", Tensor(shape)))
        place = match.end() + 2
    return label[:at], tuple(args)


def is_torch_name(name: str) -> bool:
    """Whether a name without suffix and sizes is torch's.

    Excludes `torch::autograd::AccumulateGrad`: PyTorch 1 writes it without a number and PyProf
    treats it as the user's range; excluding it keeps PyProf's direction for the work inside.
    """
    if name.startswith(EVALUATE):
        return True
    if _AUTOGRAD_NODE.match(node_of(name)):
        return False
    match = _QUALIFIED.match(name)
    return match is not None and match[1] in _TORCH_NAMESPACES


def torch_meaning(
    label: str,
    name: str,
    args: tuple[Arg, ...] | None,
    frames: tuple[str, ...] = (),
    layers: tuple[str, ...] = (),
) -> Meaning:
    """The meaning of a torch range; `args` is None if the range records no arguments."""
    node = node_of(name)
    recompute = _RECOMPUTE_NAME.match(node) is not None
    node_runs = name.startswith(EVALUATE) or is_node(node)
    return Meaning(
        Kind.TORCH,
        label,
        name,
        call=Call(*_split_namespace(node), args or ()),
        has_arguments=args is not None,
        frames=frames,
        layers=layers,
        backward=not recompute and (node_runs or _is_backward_op(node)),
        autograd_node=node_runs,
        recompute=recompute,
    )


def node_of(name: str) -> str:
    """The name without the prefixes of the autograd engine and of some compilers."""
    return name.removeprefix(EVALUATE).removeprefix("struct ").removeprefix("class ")


def is_node(node: str) -> bool:
    """Whether a torch name is an autograd node's, heuristically.

    Wrong for a user's record_function named `...Backward` and for a custom node named otherwise.
    """
    if _AUTOGRAD_NODE.match(node):
        return True
    operator = _operator(node)
    return operator is not None and BACKWARD_NODE.search(operator) is not None


def _is_backward_op(node: str) -> bool:
    """Whether a torch name is an operator of the backward pass, heuristically.

    Excludes names such as `forward_backward`, by which users denote an entire step.
    """
    operator = _operator(node)
    if operator is None or "forward" in operator:
        return False
    return _BACKWARD_OP.search(operator) is not None


def _operator(node: str) -> str | None:
    operator = node.split(" (", 1)[0].replace("(anonymous namespace)", "")
    return operator if _OPERATOR.match(operator) else None


def _split_namespace(node: str) -> tuple[str, str]:
    """Split `aten::mm` into ("aten", "mm"). PyTorch 1 names have no namespace: aten."""
    node = node.replace("(anonymous namespace)::", "")
    head = re.split(r"[ (<]", node, maxsplit=1)[0]
    at = head.rfind("::")
    return (node[:at], node[at + 2 :]) if at > 0 and at + 2 < len(node) else ("aten", node)
