"""Records the calls of PyTorch code as `Call`s: Python functions or ATen operators."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.overrides import TorchFunctionMode, resolve_name  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


def value(found: Any) -> Any:
    """An argument as in a trace: shape, type and strides of tensors, plain values."""
    if isinstance(found, torch.Tensor):
        dtype = str(found.dtype).removeprefix("torch.")
        strides = tuple(found.stride()) if found.layout == torch.strided else None
        return Tensor(tuple(found.shape), dtype, strides)
    if isinstance(found, (list, tuple)):
        return tuple(map(value, found))
    if isinstance(found, (bool, int, float, complex, str)) or found is None:
        return found
    return str(found)


def call(mod: str, op: str, args: Any, kwargs: Any) -> Call:
    named = [Arg(key, value(each)) for key, each in (kwargs or {}).items()]
    return Call(mod, op, (*(Arg("", value(arg)) for arg in args), *named))


class _Functions(TorchFunctionMode):
    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        name = resolve_name(function)
        if name is not None and "__get__" not in name:
            mod, _, op = name.rpartition(".")
            self._calls.append(call(mod, op, args, kwargs))
        return function(*args, **(kwargs or {}))  # this mode is off inside: outermost calls only


class _Operators(TorchDispatchMode):
    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self._calls = calls

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        space, _, op = function._schema.name.partition("::")
        filled = _in_order(function._schema, args, kwargs or {})
        self._calls.append(Call(space, op, tuple(Arg("", value(each)) for each in filled)))
        return function(*args, **(kwargs or {}))


def _in_order(schema: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    # All arguments by position, defaults too, as a trace with concrete inputs has them.
    for i, argument in enumerate(schema.arguments):
        if i < len(args):
            yield args[i]
        else:
            yield kwargs.get(argument.name, argument.default_value)


@contextmanager
def python_calls() -> Iterator[list[Call]]:
    """Records the outermost calls of torch's Python functions and methods."""
    calls: list[Call] = []
    with _Functions(calls):
        yield calls


@contextmanager
def aten_calls() -> Iterator[list[Call]]:
    """Records the dispatched ATen operators, including those of the backward pass."""
    calls: list[Call] = []
    with _Operators(calls):
        yield calls


def recorded(manager: Callable[[], Any], function: Callable[[], Any]) -> list[Call]:
    """The calls that a function makes, by one of the two managers above."""
    with manager() as calls:
        function()
    return calls
