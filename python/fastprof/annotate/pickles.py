"""Lets every pickler take functions of torch that a program held before `init`.

Pickle refuses a function that is not what stands under its name; cloudpickle and dill copy its
code. With `reducer_override`, which each pickler asks first, it is pickled by where it is found.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, Final

from fastprof.annotate.table import subclasses
from fastprof.annotate.wrap import patches, replaced


def install() -> None:
    """Teach the picklers of Python, in C and in Python, and what others derive from them."""
    patches.give(pickle.Pickler, "reducer_override", _reduced)
    patches.give(pickle.Pickler, "__init_subclass__", _DERIVED)
    patches.replace(pickle._Pickler, "reducer_override", _reduced)
    for kind in (*subclasses(pickle.Pickler), *subclasses(pickle._Pickler)):
        _teach(kind)


def _teach(kind: type) -> None:
    own = vars(kind).get("reducer_override")
    if own is not None:
        patches.replace(kind, "reducer_override", _before(own))


def _derived(kind: Any, /, **keywords: Any) -> None:
    """A class is derived from pickle.Pickler: cloudpickle is imported now."""
    super(pickle.Pickler, kind).__init_subclass__(**keywords)
    _teach(kind)


_DERIVED: Final = classmethod(_derived)


def _reduced(_: Any, value: Any) -> Any:
    wrapped = replaced.get(id(value))
    return NotImplemented if wrapped is None else wrapped.__reduce__()


def _before(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def reducer_override(pickler: Any, value: Any) -> Any:
        wrapped = replaced.get(id(value))
        return own(pickler, value) if wrapped is None else wrapped.__reduce__()

    return reducer_override
