"""Turns a Python stack into its function names: `/<module>/main/Net::forward/conv1`.

A method is prefixed with the class of its object. A call of a submodule appears as its attribute
name (`conv1`). Frames of torch are omitted.
"""

from __future__ import annotations

import enum
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn import Module

from fastprof._core._frames import self_of

_TORCH = str(Path(torch.__file__).parent) + "/"
_HERE = str(Path(__file__).parent) + "/"


class _Kind(enum.Enum):
    FUNCTION = 0
    METHOD = 1
    MODULE_CALL = 2  # runs a module's hooks and forward
    LIBRARY = 3


# Keyed by id, because hashing code is slow; the value keeps the code object alive.
_kinds: dict[int, tuple[_Kind, CodeType]] = {}


def _kind(code: CodeType) -> _Kind:
    known = _kinds.get(id(code))
    if known is None:
        known = _kinds[id(code)] = _found_kind(code), code
    return known[0]


def _found_kind(code: CodeType) -> _Kind:
    calls = (getattr(Module, name, None) for name in ("_call_impl", "__call__"))
    if any(getattr(call, "__code__", None) is code for call in calls):
        return _Kind.MODULE_CALL
    if code.co_filename.startswith((_TORCH, _HERE)):
        return _Kind.LIBRARY
    has_self = code.co_argcount and code.co_varnames[0] == "self"
    return _Kind.METHOD if has_self else _Kind.FUNCTION


def function_stack(frame: FrameType) -> str:
    """Names of the functions on a frame's stack, outermost first."""
    frames = []
    outer: FrameType | None = frame
    while outer is not None:
        kind = _kind(outer.f_code)
        if kind is not _Kind.LIBRARY:
            frames.append((kind, outer))
        outer = outer.f_back
    names: list[str] = []
    around: list[Module] = []  # modules whose forward is running, outermost first
    for kind, each in reversed(frames):
        name = _name(kind, each, around)
        if name and names[-1:] != [name]:  # recursion appears once
            names.append(name)
    return "".join(f"/{name}" for name in names)


def _name(kind: _Kind, frame: FrameType, around: list[Module]) -> str | None:
    if kind is _Kind.FUNCTION:
        return frame.f_code.co_name
    owner = self_of(frame)
    if kind is _Kind.METHOD:
        return f"{type(owner).__name__}::{frame.f_code.co_name}"
    if not isinstance(owner, Module) or (around and around[-1] is owner):
        return None
    name = _attribute(around, owner)
    around.append(owner)
    return name


def _attribute(around: list[Module], module: Any) -> str | None:
    """The attribute name of a module in the innermost enclosing module that has it."""
    for parent in reversed(around):
        for name, child in parent._modules.items():
            if child is module:
                return str(name)
    return None
