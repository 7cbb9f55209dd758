"""Turns a Python stack into the names of its functions: `/<module>/main/Net::forward/conv1`.

A method is named with the class of its object. A call of a module that is an attribute of the
module around it goes by that attribute's name (`conv1`); the frames of torch itself are left out.
"""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn import Module

from fastprof._frames import self_of

_TORCH = str(Path(torch.__file__).parent) + "/"
_HERE = str(Path(__file__).parent) + "/"


def _module_calls() -> frozenset[CodeType]:
    names = ("_call_impl", "__call__")
    return frozenset(
        function.__code__
        for name in names
        if hasattr(function := getattr(Module, name, None), "__code__")
    )


_MODULE_CALLS = _module_calls()


def function_stack(frame: FrameType) -> str:
    """The names of the functions of a frame and those around it, outermost first."""
    frames = []
    outer: FrameType | None = frame
    while outer is not None:
        frames.append(outer)
        outer = outer.f_back
    names: list[str] = []
    around: list[Module] = []  # modules whose forward is running, outermost first
    for each in reversed(frames):
        name = _name(each, around)
        if name:
            names.append(name)
    return "".join(f"/{name}" for name in names)


def _name(frame: FrameType, around: list[Module]) -> str | None:
    code = frame.f_code
    if code in _MODULE_CALLS:
        module = self_of(frame)
        name = _attribute(around, module) if around and around[-1] is not module else None
        if isinstance(module, Module) and (not around or around[-1] is not module):
            around.append(module)
        return name
    if code.co_filename.startswith((_TORCH, _HERE)):
        return None
    owner = self_of(frame)
    return code.co_name if owner is None else f"{type(owner).__name__}::{code.co_name}"


def _attribute(around: list[Module], module: Any) -> str | None:
    """The name under which one of the modules around holds this one, the innermost first."""
    for parent in reversed(around):
        for name, child in parent._modules.items():
            if child is module:
                return name
    return None
