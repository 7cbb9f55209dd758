"""Converts the PyTorch profiler's record of a collective to a call of c10d's operator.

`record_param_comms` contains the collective's name, the element counts of this rank's input and
output, their type and the number of ranks. The enclosing c10d event has none of these when shapes
are not recorded.
Source: torch/csrc/distributed/c10d/ParamCommsUtils.hpp and ProcessGroupNCCL.cpp of PyTorch.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor

__all__ = ["RECORDED", "recorded"]

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


def recorded(pairs: str) -> Call | None:
    """The call in `"key":value` pairs, such as `"Collective name":"allreduce","In msg nelems":8`.

    Returns
    -------
    Call or None
        The c10d operator with flat tensors and the number of ranks as the keyword `ranks`. None if
        the pairs contain no known collective or no sizes.
    """
    try:
        fields = json.loads(f"{{{pairs}}}")
    except (ValueError, RecursionError):
        return None
    name = fields.get("Collective name")
    operator = _OPERATORS.get(name) if isinstance(name, str) else None
    given, got = (_count(fields.get(key)) for key in ("In msg nelems", "Out msg nelems"))
    if operator is None or given is None or got is None:
        return None
    dtype = fields.get("dtype")
    plain = dtype.lower() if isinstance(dtype, str) else None
    of_type = None if plain is None else _TYPES.get(plain, plain)
    op, order = operator
    values = _values(order, Tensor((given,), of_type), Tensor((got,), of_type))
    ranks = _count(fields.get("Group size"))
    named = Arg("ranks", UNKNOWN if ranks is None else ranks)
    return Call("c10d", op, (*(Arg("", value) for value in values), named))


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
