"""Lets pickle take functions of torch that a program held before `init`.

Pickle refuses a function that is not what stands under its name. torch itself holds such ones: the
default activation of a TransformerEncoderLayer. They are pickled as what stands there now.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from fastprof.annotate.wrap import patches, replaced


def install() -> None:
    """Teach pickle.dump and dumps, and what passes objects between processes."""
    patches.replace(pickle, "dumps", _as_before_if_refused(pickle.dumps))
    patches.replace(pickle, "dump", as_before(pickle.dump))
    patches.replace(torch, "save", as_before(torch.save))
    patches.replace(ForkingPickler, "reducer_override", _reduced)
    if torch.distributed.is_available():
        patches.replace(torch.distributed.distributed_c10d, "_pickler", _Pickler)


def _reduced(_: pickle.Pickler, value: Any) -> Any:
    wrapped = replaced.get(id(value))
    return NotImplemented if wrapped is None else wrapped.__reduce__()


class _Pickler(pickle.Pickler):
    reducer_override = _reduced


def as_before(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sees torch as it was before `init`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with patches.aside():
            return function(*args, **kwargs)

    return call


def _as_before_if_refused(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except pickle.PicklingError:
            with patches.aside():
                return function(*args, **kwargs)

    return call
