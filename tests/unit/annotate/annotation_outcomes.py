"""Comparable outcomes of a program with and without annotation.

plain, *annotated = outcomes(program)
assert annotated == [plain] * 3
"""

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

import fastprof
from support.annotation_modes import MODES, listening

ADDRESS = re.compile(r"0x[0-9a-f]+")


def outcomes(program: Callable[[], Any]) -> list[Any]:
    """The results of a program: without annotation, then with it and each kind of listener."""
    fastprof.uninit()
    result = [_outcome(program)]
    with fastprof.init():
        for mode in MODES:
            with listening(mode) as heard:
                result.append(_outcome(program))
            assert heard.is_nested(), mode
            assert heard.texts() or mode == MODES[0], mode
    return result


def _outcome(program: Callable[[], Any]) -> Any:
    torch.manual_seed(1)
    try:
        return described(program())
    except Exception as error:
        return refusal(error)


def statement_outcomes(statements: Sequence[str], make: Callable[[], dict[str, Any]]) -> list[Any]:
    """The effects of statements: (statement, names or exception), each on a fresh namespace."""

    def program() -> dict[str, Any]:
        return {statement: _names_after(statement, make()) for statement in statements}

    return outcomes(program)


def _names_after(statement: str, names: dict[str, Any]) -> Any:
    try:
        exec(statement, names)
    except Exception as error:
        names["refusal"] = refusal(error)
    return {name: value for name, value in names.items() if not name.startswith("__")}


def refusal(error: BaseException) -> tuple[str, str]:
    """The type and text of an exception."""
    return type(error).__name__, ADDRESS.sub("", str(error))


def described(value: Any, given: Sequence[Any] = ()) -> Any:
    """A comparable form of a value; tensors also record which of the given tensors they are."""
    if isinstance(value, torch.Tensor):
        return _tensor(value, given)
    if isinstance(value, dict):
        return {key: described(each, given) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [described(each, given) for each in value]
    return type(value), ADDRESS.sub("", repr(value))


def _tensor(value: torch.Tensor, given: Sequence[Any]) -> Any:
    same = [i for i, each in enumerate(given) if each is value]
    kind = type(value), value.dtype, value.layout, value.requires_grad, type(value.grad_fn), same
    if value.layout is not torch.strided or value._is_zerotensor() or value.is_quantized:
        return kind, value.shape, repr(value)
    dense = value.detach().resolve_conj().resolve_neg().contiguous()
    held = ctypes.string_at(dense.data_ptr(), dense.nbytes) if dense.nbytes else b""
    return kind, value.shape, value.stride(), held
