"""The parts of a training step as data: Python calls, their ATen ops, autograd nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """An autograd node that an op creates.

    `grad` is the shape of the incoming gradient, `work` the ops of its backward and `n_parameters`
    the number of parameters whose gradients it completes.
    """

    name: str
    grad: Shape
    work: tuple[Op, ...] = ()
    n_parameters: int = 0


@dataclass(frozen=True)
class Op:
    """An ATen op. The ops `inside` it run before its own kernels; `shapes` are those of inputs."""

    name: str
    shapes: tuple[Shape, ...] = ()
    kernels: tuple[str, ...] = ()
    node: Node | None = None
    inside: tuple[Op, ...] = ()


@dataclass(frozen=True)
class Call:
    """A Python call as PyProf marks it (module, name, arguments), and the ATen ops it runs."""

    mod: str
    op: str
    args: tuple[dict[str, Any], ...]
    ops: tuple[Op, ...]


def tensor(shape: Shape, dtype: str) -> dict[str, Any]:
    """A tensor argument of a call."""
    return {"name": "", "type": "tensor", "shape": shape, "dtype": dtype}


def value(value: float | tuple[int, ...] | None, name: str = "") -> dict[str, Any]:
    """Any other argument of a call; a keyword argument if it has a name."""
    return {"name": name, "type": type(value).__name__, "value": value}
