"""Calls of ATen's `out` overloads, derived from plain calls in torch's samples."""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fastprof.model.call import Arg, Call, Tensor
from support.record_calls import _in_order, value

# Arguments of creations that the output tensor determines instead.
_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory"})


class Pair(NamedTuple):
    """One call in two forms: plain, and with output tensors."""

    overload: str
    plain: Call
    out: Call


def _results(schema: Any) -> int:
    """The number of output tensors of an overload; they are the last arguments."""
    return sum(
        argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write
        for argument in schema.arguments
    )


def _inputs(schema: Any) -> tuple[tuple[str, str], ...]:
    arguments = schema.arguments[: len(schema.arguments) - _results(schema)]
    return tuple(
        (argument.name, str(argument.type))
        for argument in arguments
        if argument.name not in _OPTIONS
    )


@cache
def out_overloads() -> dict[str, list[Any]]:
    """Schemas of ATen's `out` overloads by operator name."""
    result = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and _results(schema):
            result[schema.name.removeprefix("aten::")].append(schema)
    return result


def with_results(plain: Call, schema: Any, results: Iterable[Any]) -> Iterator[Pair]:
    """The calls of each `out` overload that correspond to a call of a plain overload."""
    kept = [
        arg
        for arg, each in zip(plain.args, schema.arguments, strict=True)
        if each.name not in _OPTIONS
    ]
    given = [Arg("", result) for result in results]
    for other in out_overloads()[plain.op]:
        n = _results(other)
        if _inputs(other) == _inputs(schema) and n <= len(given):
            out = Call(plain.mod, plain.op, (*kept, *given[:n]))
            yield Pair(f"{plain.op}.{other.overload_name}", plain, out)


class _Pairs(TorchDispatchMode):
    """Every dispatched call that has an `out` overload of the same arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, Pair] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        schema = function._schema
        name = schema.name.removeprefix("aten::")
        if name in out_overloads() and not _results(schema):
            filled = _in_order(schema, args, kwargs or {})
            plain = Call("aten", name, tuple(Arg("", value(each)) for each in filled))
            results = result if isinstance(result, tuple) else (result,)
            if all(isinstance(result, (torch.Tensor, list)) for result in results):
                for pair in with_results(plain, schema, map(value, results)):
                    self.found.setdefault(repr(pair), pair)
        return result


def sampled_pairs(samples: int) -> list[Pair]:
    """Pairs from torch's samples (OpInfo) on the CPU, a limited number per operator."""
    # Its import takes 2 s, which every process that collects this test would spend.
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    # For each sample, torch would search the sources of the whole stack.
    with (
        patch.object(core, "extract_test_fn", lambda: None),
        patch.object(common_utils, "extract_test_fn", lambda: None),
    ):
        return _sampled_pairs(op_db, samples)


def _sampled_pairs(op_db: list[Any], samples: int) -> list[Pair]:
    with _Pairs() as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in op_db:
            dtype = torch.float32 if torch.float32 in info.dtypes else torch.int64
            try:
                for sample in islice(info.sample_inputs("cpu", dtype), samples):
                    info.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:  # not available on this machine or in this build
                continue
    return list(recorder.found.values())


def pairs_of(calls: Iterable[Call]) -> list[Pair]:
    """Pairs of calls with all arguments and invented results without types."""
    made_up = [Tensor((7, 3))] * 7
    plain = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::") and not _results(schema):
            plain[schema.name.removeprefix("aten::")].append(schema)
    result = []
    for call in calls:
        schemas = plain[call.op] if call.mod == "aten" and call.op in out_overloads() else []
        for schema in schemas:
            if len(schema.arguments) == len(call.args) and _could_be(schema, call):
                result.extend(with_results(call, schema, made_up))
    return result


def _could_be(schema: Any, call: Call) -> bool:
    # Tensors for tensor arguments, lists of tensors for list arguments.
    for argument, given in zip(schema.arguments, call.args, strict=True):
        kind, each = str(argument.type), given.value
        listed = isinstance(each, tuple) and any(isinstance(item, Tensor) for item in each)
        if listed != kind.startswith("List[") and (listed or isinstance(each, Tensor)):
            return False
        if isinstance(each, Tensor) and "Tensor" not in kind:
            return False
        if argument.name in _OPTIONS and each is not None:
            return False  # an output tensor has its own type
    return True
