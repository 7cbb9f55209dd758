"""Compares the results of torch's samples of its operators (OpInfo) with and without annotation.

PYTHONPATH=tests python -m unit.annotate.opinfo_sweep [--part 1/4] [--ops 40]
    [--dtypes float32,int64] [--seed 1]

For each operator, type and sample, it runs the function, the method and the in-place form,
gradients, forward-mode derivatives, functionalize and fake tensors; also calls with wrong arguments
and the _foreach operators on lists. It compares bits, errors and warnings. Samples run twice
without annotation, to exclude random and uninitialized results; then with it without a listener,
with a tool, and after `uninit`. Differences are printed, and the exit code is then 1.
"""

import argparse
import hashlib
import itertools
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.testing._internal import common_methods_invocations as infos
from torch.testing._internal import common_utils
from torch.testing._internal.opinfo import core
from torch.utils._pytree import tree_leaves, tree_map

import fastprof
from support.annotation_modes import TOOL, listening
from unit.annotate.annotation_outcomes import described, refusal

# For each sample, it would search the sources of the stack.
core.extract_test_fn = common_utils.extract_test_fn = lambda: None
FOREACH = ("unary", "binary", "pointwise", "reduce", "other")
MOST_SAMPLES = 12  # per operator and type; drawn at random, because the first ones are simple


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="1/1", help="which of how many parts")
    parser.add_argument("--ops", type=int, help="so many operators, drawn; all without it")
    parser.add_argument("--dtypes", help="names of types; all that an operator takes without it")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    ops = all_ops()
    if arguments.ops is not None:
        ops = random.Random(arguments.seed).sample(ops, arguments.ops)
    dtypes = arguments.dtypes and [getattr(torch, name) for name in arguments.dtypes.split(",")]
    differences = swept(ops[part - 1 :: parts], dtypes)
    for difference in differences[:100]:
        print(difference)
    return 1 if differences else 0


def all_ops() -> list[Any]:
    """All operators with samples on the CPU."""
    foreach = (getattr(infos, f"foreach_{name}_op_db", ()) for name in FOREACH)
    return [*infos.op_db, *itertools.chain(*foreach)]


def swept(ops: list[Any], dtypes: list[torch.dtype] | None) -> list[str]:
    """Return the differences; print the number of comparisons."""
    torch.set_num_threads(1)
    fastprof.uninit()
    plain = outcomes(ops, dtypes)
    again = outcomes(ops, dtypes)
    fixed = {key for key in plain if plain[key] == again.get(key)}
    result = []
    with fastprof.init():
        passes = {"with annotation": outcomes(ops, dtypes)}
        with listening(TOOL) as heard:
            passes["while a tool listens"] = outcomes(ops, dtypes)
        if not heard.is_nested() or not heard.texts():
            result.append("ranges are not nested, or there are none")
    passes["after uninit"] = outcomes(ops, dtypes)
    for name, told in passes.items():
        result += [f"{name}: {key}" for key in sorted(fixed) if told.get(key) != plain[key]]
        result += [f"{name}, only: {key}" for key in sorted(told.keys() - plain.keys())]
    ways = Counter(key.partition(":")[0] for key in fixed)
    print(f"{len(ops)} operators, {len(fixed)} outcomes compared: {dict(sorted(ways.items()))}")
    print(f"{len(plain) - len(fixed)} that are not the same twice are left out")
    return result


def outcomes(ops: list[Any], dtypes: list[torch.dtype] | None) -> dict[str, str]:
    """A digest of each outcome, by form, operator, type and number of the sample."""
    result = {}
    for op in ops:
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            if dtypes and dtype not in dtypes:
                continue
            for number, sample in enumerate(samples(op, dtype)):
                for way, run in ways(op, sample, dtype):
                    key = f"{way}: {op.name} {op.variant_test_name} {dtype} {number}"
                    result[key] = digest(run)
        for number, run in enumerate(errors(op)):
            result[f"error: {op.name} {op.variant_test_name} {number}"] = digest(run)
    return result


def samples(op: Any, dtype: torch.dtype) -> list[Any]:
    torch.manual_seed(0)
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    try:
        made = list(op.sample_inputs("cpu", dtype, requires_grad=differentiable))
    except Exception:  # some samples need features that this build of torch lacks
        return []
    drawn = random.Random(op.name).sample(range(len(made)), min(len(made), MOST_SAMPLES))
    return [made[i] for i in sorted(drawn)]


def errors(op: Any) -> Iterator[Callable[[], Any]]:
    """Calls with wrong arguments."""
    torch.manual_seed(0)
    if op.error_inputs_func is None:
        return
    try:
        wrong = [error_input.sample_input for error_input in op.error_inputs("cpu")]
    except Exception:
        return
    for sample in wrong:
        yield lambda sample=sample: op(sample.input, *sample.args, **sample.kwargs)


def ways(op: Any, sample: Any, dtype: torch.dtype) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The operations on a sample."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    if "empty" in op.name:  # uninitialized memory may be equal twice
        yield "function", lambda: tree_map(kind, op(*args, **kwargs))
        return
    yield "function", lambda: op(*args, **kwargs)
    if op.method_variant is not None:
        yield "method", lambda: op.method_variant(*args, **kwargs)
    if op.inplace_variant is not None:
        copies = lambda: tree_map(copied, args)  # noqa: E731
        yield "in place", lambda: op.inplace_variant(*copies(), **kwargs)
    differentiable = any(is_tracked(tree_leaf) for tree_leaf in tree_leaves(args))
    if differentiable:
        yield "backward", lambda: gradients(op, args, kwargs)
    if differentiable and op.supports_forward_ad:
        yield "forward-mode AD", lambda: derivatives(op, args, kwargs)
    yield (
        "functionalize",
        lambda: torch.func.functionalize(lambda *each: op(*each, **kwargs))(*args),
    )
    yield "fake tensors", lambda: faked(op, args, kwargs)


def copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def kind(value: Any) -> Any:
    """The properties of a tensor without its values."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.shape, value.stride(), value.dtype, value.requires_grad


def is_tracked(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def gradients(op: Any, args: Any, kwargs: Any) -> Any:
    leaves = [tree_leaf for tree_leaf in tree_leaves((args, kwargs)) if is_tracked(tree_leaf)]
    results = [tree_leaf for tree_leaf in tree_leaves(op(*args, **kwargs)) if is_tracked(tree_leaf)]
    total = sum(result.abs().sum() for result in results)
    return torch.autograd.grad(total, leaves, allow_unused=True)


def derivatives(op: Any, args: Any, kwargs: Any) -> Any:
    with forward_ad.dual_level():

        def dual(value: Any) -> Any:
            if not is_tracked(value):
                return value
            return forward_ad.make_dual(value.detach(), torch.ones_like(value))

        results = tree_leaves(op(*tree_map(dual, args), **tree_map(dual, kwargs)))
        tensors = [result for result in results if isinstance(result, torch.Tensor)]
        return [tuple(forward_ad.unpack_dual(tensor)) for tensor in tensors]


def faked(op: Any, args: Any, kwargs: Any) -> Any:
    with FakeTensorMode() as mode:

        def fake(value: Any) -> Any:
            return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value

        return tree_map(kind, op(*tree_map(fake, args), **tree_map(fake, kwargs)))


def digest(run: Callable[[], Any]) -> str:
    """The outcome of a call: its bits or error, and its warnings."""
    torch.default_generator.manual_seed(0)  # of the CPU alone
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            outcome = described(run())
        except Exception as error:
            outcome = refusal(error)
    said = sorted({str(each.message) for each in warned})
    return hashlib.sha1(repr((outcome, said)).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
