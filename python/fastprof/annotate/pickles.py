"""Makes every pickler accept torch functions that the program referenced before `init`.

Pickle rejects a function that is not the attribute its name refers to; cloudpickle and dill copy
its code. `reducer_override`, which a pickler calls first, pickles such a function by reference.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, Final

from fastprof.annotate.table import subclasses
from fastprof.annotate.wrap import patches, replaced


def install() -> None:
    """Patch Python's picklers (C and Python) and all their subclasses."""
    patches.add(pickle.Pickler, "reducer_override", _reduced)
    patches.add(pickle.Pickler, "__init_subclass__", _INIT_SUBCLASS)
    patches.replace(pickle._Pickler, "reducer_override", _reduced)
    for kind in (*subclasses(pickle.Pickler), *subclasses(pickle._Pickler)):
        _patch(kind)


def _patch(kind: type) -> None:
    own = vars(kind).get("reducer_override")
    if own is not None:
        patches.replace(kind, "reducer_override", _before(own))


def _init_subclass(kind: Any, /, **keywords: Any) -> None:
    """Patch a new subclass of pickle.Pickler, such as cloudpickle's when it is imported."""
    super(pickle.Pickler, kind).__init_subclass__(**keywords)
    _patch(kind)


_INIT_SUBCLASS: Final = classmethod(_init_subclass)


def _reduced(_: Any, value: Any) -> Any:
    wrapped = replaced.get(id(value))
    return NotImplemented if wrapped is None else wrapped.__reduce__()


def _before(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def reducer_override(pickler: Any, value: Any) -> Any:
        wrapped = replaced.get(id(value))
        return own(pickler, value) if wrapped is None else wrapped.__reduce__()

    return reducer_override
