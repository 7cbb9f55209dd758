"""Reads the PyTorch profiler's record of a collective, and converts it to a call of c10d.

`record_param_comms` contains the collective's name, the element counts of this rank's input and
output, their type and the number of ranks. The enclosing c10d event has none of these when shapes
are not recorded.
Source: torch/csrc/distributed/c10d/ParamCommsUtils.hpp and ProcessGroupNCCL.cpp of PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Final

from fastprof._system.classes import dataclass
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor

RECORDED: Final = "record_param_comms"

# The operator and the layout of its first arguments: input and output, in lists or nested lists.
_GIVEN, _LARGER, _BOTH, _LISTS, _NESTED_GIVEN, _NESTED_GOT, _NONE = range(7)
_OPERATORS: Final = {
    "allreduce": ("allreduce_", _GIVEN),
    "allreduce_sparse": ("allreduce_", _GIVEN),
    "allreduce_coalesced": ("allreduce_coalesced_", _GIVEN),
    "broadcast": ("broadcast_", _LARGER),
    "_broadcast_oop": ("broadcast_", _LARGER),
    "reduce": ("reduce_", _GIVEN),
    "_reduce_oop": ("reduce_", _GIVEN),
    "send": ("send", _LARGER),
    "recv": ("recv_", _LARGER),
    "_allgather_base": ("_allgather_base_", _BOTH),
    "all_gather": ("allgather_", _NESTED_GOT),
    "allgather_coalesced": ("allgather_coalesced_", _NESTED_GOT),
    "all_gather_into_tensor_coalesced": ("allgather_into_tensor_coalesced_", _LISTS),
    "allgather_into_tensor_coalesced": ("allgather_into_tensor_coalesced_", _LISTS),
    "_reduce_scatter_base": ("_reduce_scatter_base_", _BOTH),
    "reduce_scatter": ("reduce_scatter_", _NESTED_GIVEN),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor_coalesced_", _LISTS),
    "all_to_all": ("alltoall_base_", _BOTH),
    "all_to_allv": ("alltoall_base_", _BOTH),
    "gather": ("gather_", _NESTED_GOT),
    "scatter": ("scatter_", _NESTED_GIVEN),
    "barrier": ("barrier", _NONE),
}

# Names of c10::ScalarType that differ from torch's dtype names.
_TYPES: Final = {
    "byte": "uint8",
    "complexhalf": "complex32",
    "complexfloat": "complex64",
    "complexdouble": "complex128",
}


@dataclass(frozen=True, slots=True)
class Collective:
    """The record of one call of a collective; None for values that it lacks.

    Parameters
    ----------
    name : str
        torch's name of the collective, such as `_allgather_base`.
    given, got : int or None
        Elements of this rank's input and output.
    dtype : str or None
        torch's name of the type (`float32`).
    ranks : int or None
        Number of ranks of the process group.
    group : str or None
        Name of the process group, followed by its description if it has one: `0 default_pg`.
    members : tuple of int
        Ranks of the process group; empty if not recorded or, for large groups, cut.
    source, target : int or None
        The rank that sends and the rank that receives a message.
    given_rows, got_rows : tuple of int
        Rows that this rank sends to and receives from each rank of an all-to-all of uneven parts;
        empty if not recorded, for even parts, and for lists that are cut.
    """

    name: str
    given: int | None
    got: int | None
    dtype: str | None
    ranks: int | None
    group: str | None
    members: tuple[int, ...] = ()
    source: int | None = None
    target: int | None = None
    given_rows: tuple[int, ...] = ()
    got_rows: tuple[int, ...] = ()


def recorded(pairs: str) -> Collective | None:
    """The record in `"key":value` pairs, such as `"Collective name":"allreduce","dtype":"Float"`.

    None if the pairs contain no name of a collective.
    """
    import json

    try:
        fields = json.loads(f"{{{pairs}}}")
    except (ValueError, RecursionError):
        return None
    return recorded_in(fields)


def recorded_in(fields: Mapping[str, Any]) -> Collective | None:
    """The record in fields by name; None without the name of a collective."""
    name, dtype = fields.get("Collective name"), fields.get("dtype")
    if not isinstance(name, str) or not name:
        return None
    plain = dtype.lower() if isinstance(dtype, str) else None
    group, about = (fields.get(f"Process Group {key}") for key in ("Name", "Description"))
    given, got = (_count(fields.get(f"{key} msg nelems")) for key in ("In", "Out"))
    return Collective(
        name=intern(name),
        given=given,
        got=given if got == given else got,  # one object
        dtype=None if plain is None else _TYPES.get(plain, intern(plain)),
        ranks=_count(fields.get("Group size")),
        group=_group(group, about) if isinstance(group, str) else None,
        members=_numbers(fields.get("Process Group Ranks")),
        source=_count(fields.get("Src Rank")),
        target=_count(fields.get("Dst Rank")),
        given_rows=_numbers(fields.get("In split size")),
        got_rows=_numbers(fields.get("Out split size")),
    )


def _group(name: str, about: Any) -> str:
    """The name of a process group, followed by its description if it has one."""
    described = isinstance(about, str) and about not in ("", "undefined", name)
    return intern(f"{name} {about}" if described else name)


def _numbers(text: Any) -> tuple[int, ...]:
    """The numbers in `[0, 1, 2]`; none of a list that is cut."""
    parts = text.strip("[]").split(",") if isinstance(text, str) else []
    numbers = [part.strip() for part in parts]
    is_whole = all(part.isdigit() and len(part) < 10 for part in numbers)
    return tuple(map(int, numbers)) if is_whole else ()


def call_of(record: Collective | None) -> Call | None:
    """The call of the c10d operator, with flat tensors and the number of ranks as `ranks`.

    None if the collective or its sizes are unknown.
    """
    if record is None:
        return None
    operator = _OPERATORS.get(record.name)
    if operator is None or record.given is None or record.got is None:
        return None
    op, order = operator
    given, got = (Tensor((count,), record.dtype) for count in (record.given, record.got))
    values = [Arg("", value) for value in _values(order, given, got)]
    return Call("c10d", op, (*values, _ranks(record.ranks)))


@lru_cache(maxsize=256)
def _ranks(n: int | None) -> Arg:
    """The number of ranks: that of all calls of a process group is one object."""
    return Arg("ranks", UNKNOWN if n is None else n)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _values(order: int, given: Tensor, got: Tensor) -> tuple[Any, ...]:
    larger = given if given.shape >= got.shape else got
    return {
        _GIVEN: ((given,),),
        _LARGER: ((larger,),),
        _BOTH: (got, given),
        _LISTS: ((got,), (given,)),
        _NESTED_GIVEN: ((got,), ((given,),)),
        _NESTED_GOT: (((got,),), (given,)),
        _NONE: (),
    }[order]
