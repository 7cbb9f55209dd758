"""Passes the wrapper to `__torch_function__` where torch would pass the original function.

C functions determine which `__torch_function__` handlers to call, in which order and with which
types. A mode around the call leaves that to them and substitutes the wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode

from fastprof._core._hooks import Wrapped


def hand_over(wrapped: Wrapped, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a wrapped function when an argument or a mode defines `__torch_function__`."""
    with _HandOver(wrapped):
        return wrapped.__wrapped__(*args, **kwargs)


class _HandOver(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    def __init__(self, wrapped: Wrapped) -> None:
        self._wrapped = wrapped

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        handed = self._wrapped if self._wrapped == func else func
        asked = []
        if torch._C._is_torch_function_mode_enabled():
            with overrides._pop_mode_temporarily() as mode:
                result = mode.__torch_function__(handed, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(f"mode object {mode!r}")
        for owner in _one_of_each(types, args, kwargs):
            result = owner.__torch_function__(handed, types, args, kwargs)
            if result is not NotImplemented:
                return result
            asked.append(f"tensor subclass {type(owner)!r}")
        if not asked:
            return func(*args, **kwargs)
        raise TypeError(_REFUSED.format(func.__name__, "\n".join(f"  - {each}" for each in asked)))


# Same text as in torch/csrc/utils/python_arg_parser.cpp.
_REFUSED = (
    "Multiple dispatch failed for 'torch.{}'; all __torch_function__ handlers returned "
    "NotImplemented:\n\n{}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
)


def _one_of_each(
    types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[Any]:
    """An argument of each type, also from within lists; the type itself if there is none."""
    given = [*args, *kwargs.values()]
    given += [item for each in given if isinstance(each, (list, tuple)) for item in each]
    for kind in types:
        yield next((each for each in given if type(each) is kind), kind)
