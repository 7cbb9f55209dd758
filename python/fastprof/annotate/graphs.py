"""Layers of CUDA graphs: annotations of the nodes that a capture makes while modules run in it.

A replay launches kernels without the code that captured them. torch 2.12 and later annotates nodes
(torch/cuda/_graph_annotations.py), with cuda-bindings 13.1 and a driver of CUDA 13.1. While
`torch.cuda.graph` captures, every module marks the nodes of its forward pass, and of its backward
pass if the capture has it. Outside of captures nothing runs. A failure ends the annotation of the
capture; the program does not see it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from fastprof.annotate.patches import Patches
from fastprof.model.markers.annotations import (
    BACKWARD,
    DIRECTION,
    FORWARD,
    MODULE,
    MODULES_OF_TORCH,
)

Names = Callable[[], Iterable[tuple[str, Module]]]
_patches = Patches()
_lock = threading.RLock()
_names: list[Names] = []


class GraphLayers:
    """Annotates captures from now on, until `remove`.

    Parameters
    ----------
    names : returns the modules with the names of their layers, at the begin of a capture
    """

    def __init__(self, names: Names) -> None:
        self._own = names
        with _lock:
            _names.append(names)
            if not _patches and is_available():
                cuda_graph = torch.cuda.graph
                _patches.replace(cuda_graph, "__enter__", _entering(cuda_graph.__enter__))
                _patches.replace(cuda_graph, "__exit__", _leaving(cuda_graph.__exit__))

    def remove(self) -> None:
        """Annotate no more captures with these names."""
        with _lock:
            if self._own in _names:
                _names.remove(self._own)
            if not _names:
                _patches.revert()


def is_available() -> bool:
    """Whether torch can annotate graphs, and has the CUDA bindings that it needs."""
    if "enable_annotations" not in inspect.signature(torch.cuda.graph.__init__).parameters:
        return False
    try:
        return importlib.util.find_spec("cuda.bindings") is not None
    except (ImportError, ValueError):
        return False


def _annotating() -> Any:
    """The module of torch that annotates graphs; None without."""
    for name in MODULES_OF_TORCH:
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


class _Capture:
    """Marks the nodes of modules in one capture.

    Scopes nest: torch gives a node the fields of the innermost. The backward scope of a call lasts
    from the first gradient of an output to those of all inputs, or to the end of the backward pass
    if no input needs a gradient.
    """

    def __init__(self, torch_annotations: Any, modules: Iterable[tuple[str, Module]]) -> None:
        self._torch, self._is_broken = torch_annotations, False
        self._calls = threading.local()
        self._backward: list[_Call] = []  # with an open scope
        self._was_enabled = bool(getattr(torch_annotations, "_annotations_enabled", True))
        torch_annotations.enable_annotations()
        self._hooks: list[RemovableHandle] = []
        for name, module in modules:
            enter = functools.partial(self._guarded, self._enter, name)
            leave = functools.partial(self._guarded, self._leave)
            self._hooks.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            self._hooks.append(module.register_forward_hook(leave, always_call=True))

    def end(self) -> None:
        """Close all scopes, and let torch assign them to the nodes of the capture."""
        while self._hooks:
            self._hooks.pop().remove()
        self._close_all()
        self._torch.resolve_pending_annotations()
        if not self._was_enabled:
            self._torch.disable_annotations()

    def remap(self, cuda_graph: Any) -> None:
        """Give the annotations the id of the graph that is replayed; torch has that of the capture.

        One that is kept to be changed has no such graph yet, and its annotations are lost.
        """
        self._torch.remap_to_exec_graph(cuda_graph)

    def _guarded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function, which never fails for the program, nor shows to torch.compile."""
        if self._is_broken or torch.compiler.is_compiling():
            return
        try:
            function(*arguments)
        except Exception:
            self._is_broken = True

    def _open(self) -> list[_Call]:
        """The calls of this thread that have begun, outermost first."""
        calls: list[_Call] | None = getattr(self._calls, "open", None)
        if calls is None:
            calls = self._calls.open = []
        return calls

    def _enter(self, name: str, _: Module, arguments: Any, named: Any) -> None:
        calls = self._open()
        call = _Call(name, self._torch.mark_kernels, calls[-1] if calls else None)
        calls.append(call)
        inputs = [x for x in _with_gradients((arguments, named)) if not x.is_leaf]
        call.n_inputs = len(inputs)
        for tensor in inputs:
            tensor.register_hook(functools.partial(self._guarded, self._input_done, call))
        call.enter(FORWARD)

    def _leave(self, _: Module, arguments: Any, output: Any) -> None:
        call = self._open().pop()
        call.leave()
        for tensor in _with_gradients(output):
            tensor.register_hook(functools.partial(self._guarded, self._enter_backward, call))

    def _enter_backward(self, call: _Call, _: Tensor) -> None:
        if call in self._backward:
            return  # of another output
        call.n_left = call.n_inputs
        if not self._backward:
            engine: Any = torch.autograd.Variable._execution_engine
            engine.queue_callback(functools.partial(self._guarded, self._close_all))
        self._backward.append(call)
        call.enter(BACKWARD)

    def _input_done(self, call: _Call, _: Tensor) -> None:
        call.n_left -= 1
        if call.n_left == 0:
            self._leave_backward(call)

    def _leave_backward(self, call: _Call) -> None:
        """Close the scope, and those opened since; but those of other calls go on in a new one.

        torch gives a node the fields of the scope that ends first.
        """
        if call not in self._backward:
            return
        others = []
        while (last := self._backward.pop()) is not call:
            last.leave()
            if not last.is_in(call):
                others.append(last)
        call.leave()
        for other in reversed(others):
            self._backward.append(other)
            other.enter(BACKWARD)

    def _close_all(self) -> None:
        while self._backward:
            self._backward.pop().leave()


class _Call:
    """A call of a module, with the scope that is open for it.

    Parameters
    ----------
    name : of its layer
    mark : torch's `mark_kernels`
    around : the call of the module around it, if any
    """

    def __init__(
        self, name: str, mark: Callable[[dict[str, str]], Any], around: _Call | None
    ) -> None:
        self._name, self._mark, self._around = name, mark, around
        self._scope: Any = None
        self.n_inputs = self.n_left = 0  # that need a gradient; whose gradient is not yet complete

    def is_in(self, call: _Call) -> bool:
        """Whether it is part of another call."""
        around = self._around
        while around is not None and around is not call:
            around = around._around
        return around is not None

    def enter(self, direction: str) -> None:
        self._scope = self._mark({MODULE: self._name, DIRECTION: direction})
        self._scope.__enter__()

    def leave(self) -> None:
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.__exit__(None, None, None)


def _with_gradients(values: Any) -> list[Tensor]:
    return [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.requires_grad]


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the begin of a capture."""

    @functools.wraps(original)
    def enter(capture: Any) -> Any:
        result = original(capture)
        with suppress(Exception):
            own = _annotating()
            modules = {id(module): (name, module) for names in _names for name, module in names()}
            _captures[id(capture)] = _Capture(own, modules.values())
        return result

    return enter


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the end of a capture; then the annotations get the id of the graph that is replayed."""

    @functools.wraps(original)
    def leave(capture: Any, *exception: Any) -> Any:
        own = _captures.pop(id(capture), None)
        with suppress(Exception):
            if own is not None:
                own.end()
        result = original(capture, *exception)
        with suppress(Exception):
            if own is not None:
                own.remap(capture.cuda_graph)
        return result

    return leave


_captures: dict[int, _Capture] = {}
