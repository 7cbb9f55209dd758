"""Calls torch's database of operators with and without annotation, and prints differences.

PYTHONPATH=tests python -m unit.annotate.annotated_operators N_SAMPLES

A separate program, because the database must be imported after `init` to contain the wrapped
functions.
"""

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten, tree_map

import fastprof
from fastprof._core._hooks import Wrapped
from support.annotation_modes import MODES, listening
from unit.annotate.annotation_outcomes import described, refusal

UNDEFINED = re.compile(r"(new_)?empty|resize_")  # their results are uninitialized


class Call(NamedTuple):
    """A call: its form, operator and arguments."""

    title: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    differentiable: bool = False


def calls(n_samples: int) -> Iterator[Call]:
    """The calls of all operators of the CPU: functions, methods and in-place forms of each sample.

    n_samples : samples and wrong samples of each operator
    """
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    # For each sample, it would search the sources of the stack.
    core.extract_test_fn = common_utils.extract_test_fn = lambda: None
    for operator in op_db:
        types = operator.supported_dtypes("cpu")
        if not types:
            continue
        dtype = torch.float32 if torch.float32 in types else min(types, key=str)
        grad = operator.supports_autograd and dtype.is_floating_point
        torch.manual_seed(1)
        for sample in islice(operator.sample_inputs("cpu", dtype, requires_grad=grad), n_samples):
            for kind, function in variants(operator):
                title = f"{name_of(operator)}{kind}"
                arguments = (sample.input, *sample.args)
                yield Call(title, function, arguments, sample.kwargs, grad)
        if operator.error_inputs_func is None:
            continue
        for error in islice(operator.error_inputs("cpu"), n_samples):
            sample = error.sample_input
            title = f"{name_of(operator)} refusing"
            yield Call(title, operator.op, (sample.input, *sample.args), sample.kwargs)


def name_of(operator: Any) -> str:
    """The operator's name with its variant; torch 2.3 has no attribute for it."""
    return str(getattr(operator, "full_name", operator.formatted_name))


def variants(operator: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The forms of calling an operator."""
    ways = {
        "": operator.op,
        " as a method": operator.method_variant,
        " in place": operator.inplace_variant,
        " by a sign": operator.operator_variant,
        " by a sign in place": operator.inplace_operator_variant,
    }
    yield from ((kind, function) for kind, function in ways.items() if function is not None)


def outcome(call: Call) -> list[Any]:
    """The outcome of a call: values, types, strides, gradients, and the arguments afterwards."""
    given = tree_map(copied, (call.arguments, call.named))
    leaves = tree_flatten(given)[0]
    torch.default_generator.manual_seed(2)  # of the CPU alone
    try:
        result = call.function(*given[0], **given[1])
        returned = tree_flatten(result)[0]
        actual = ["returns", *(described(each, leaves) for each in returned)]
        if call.differentiable:
            actual += ["gradients", *map(described, gradients(returned, leaves))]
    except Exception as error:
        actual = [refusal(error)]
    return [*actual, "leaves", *map(described, leaves)]


def copied(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone()
    return copy.requires_grad_(value.requires_grad)


def gradients(returned: list[Any], leaves: list[Any]) -> list[Any]:
    outputs = [each for each in returned if isinstance(each, torch.Tensor) and each.requires_grad]
    inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_leaf]
    inputs = [each for each in inputs if each.requires_grad]
    if not outputs or not inputs:
        return []
    ones = [torch.ones_like(output) for output in outputs]
    return list(torch.autograd.grad(outputs, inputs, ones, allow_unused=True))


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    fastprof.init()
    made = list(calls(int(sys.argv[1])))
    wrapped = sum(isinstance(call.function, Wrapped) for call in made)
    fastprof.uninit()
    plain = [
        Call(
            call.title,
            call.function.__wrapped__ if isinstance(call.function, Wrapped) else call.function,
            *call[2:],
        )
        for call in made
    ]
    expected = [outcome(call) for call in plain]
    differ, nested, ranges = [], [], {}
    fastprof.init()
    for mode in MODES:
        with listening(mode) as heard:
            result = [outcome(call) for call in made]
        ranges[mode] = len(heard.texts())
        nested.append(heard.is_nested())
        for call, before, after in zip(made, expected, result, strict=True):
            if before != after and not UNDEFINED.match(call.title):
                differ.append(
                    f"{call.title}, {mode}: {str(before)[:300]} became {str(after)[:300]}"
                )
    counts = {"calls": len(made), "wrapped": wrapped, "ranges": ranges}
    print(json.dumps({**counts, "nested": nested, "differ": differ}))


if __name__ == "__main__":
    main()
