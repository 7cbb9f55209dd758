"""Attention against torch: FlopCounterMode's counts, and torch's actual calls."""

import importlib
import random
from functools import partial
from typing import Any

import pytest

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops.registry import find
from support.record_calls import aten_calls, python_calls, recorded

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention as attend  # noqa: E402
from torch.utils import flop_counter  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from unit.ops.ops_examples import cost  # noqa: E402

importlib.import_module("torch.nn.attention.varlen")  # registers its operators

CHOICE = random.Random(31)


def sizes() -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes [b, h, s, d] of queries, keys and values."""
    batch, groups, share, rows, columns, depth, width = (CHOICE.randint(1, 6) for _ in range(7))
    return (
        (batch, groups * share, rows, 4 * depth),
        (batch, groups, columns, 4 * depth),
        (batch, groups, columns, 4 * width),
    )


def called(name: str, *values: Any) -> Call:
    space, _, op = name.rpartition("::")
    return Call(space or "aten", op, tuple(Arg("", value) for value in values))


def plain(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [Tensor(tuple(shape), "float16") for shape in shapes]


FORWARD = [
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_cudnn_attention",
]


@pytest.mark.parametrize("name", FORWARD)
def test_flops_of_kernels_that_need_a_gpu_are_those_of_torchs_formulas(name: str) -> None:
    counted = flop_counter.flop_registry[getattr(torch.ops.aten, name)]
    gradients = flop_counter.flop_registry[getattr(torch.ops.aten, f"{name}_backward")]
    for _ in range(40):
        query, key, value = sizes()
        assert cost(called(name, *plain(query, key, value))).flops == counted(
            *(torch.empty(shape, device="meta") for shape in (query, key, value)), out_val=None
        )
        out = (*query[:-1], value[-1])
        expected = gradients(
            *(torch.empty(shape, device="meta") for shape in (out, query, key, value)), out_val=None
        )
        assert cost(called(name, *plain(query, key, value)), "bprop").flops == expected
        backward = called(f"{name}_backward", *plain(out, query, key, value))
        assert cost(backward).flops == expected


def heads_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[2], shape[1], shape[3])


def test_kernels_with_the_heads_third_cost_what_their_callers_do() -> None:
    for _ in range(40):
        query, key, value = sizes()
        expected = flop_counter.sdpa_flop_count(query, key, value)
        out = (*query[:-1], value[-1])
        gradients = flop_counter.sdpa_backward_flop_count(out, query, key, value)
        moved = plain(*map(heads_last, (query, key, value)))
        grad = plain(heads_last(out))
        nothing = (None, None, None)
        flash = called("_flash_attention_forward", *moved, *nothing[:2], query[2], key[2])
        efficient = called("_efficient_attention_forward", *moved, *nothing, None, None)
        assert cost(flash).flops == cost(efficient).flops == expected
        assert cost(flash, "bprop").flops == cost(efficient, "bprop").flops == gradients
        assert cost(called("flash_attn::_flash_attn_forward", *moved)).flops == expected
        back = called("_flash_attention_backward", *grad, *moved, *grad, *grad, None, None, 1, 1)
        assert cost(back).flops == gradients
        back = called("_efficient_attention_backward", *grad, *moved, None, *grad, *nothing)
        assert cost(back).flops == gradients


def test_sequences_of_one_length_count_as_torchs_formulas_count_them() -> None:
    for _ in range(20):
        (batch, heads, rows, depth), (_, groups, columns, _), (*_, width) = sizes()
        query = torch.empty(batch * rows, heads, depth)
        key = torch.empty(batch * columns, groups, depth)
        value = torch.empty(batch * columns, groups, width)
        starts = torch.arange(0, batch + 1, dtype=torch.int32)
        expected = flop_counter.flop_registry[torch.ops.aten._flash_attention_forward](
            query, key, value, starts * rows, starts * columns, rows, columns
        )
        tensors = plain(tuple(query.shape), tuple(key.shape), tuple(value.shape))
        place = Tensor((batch + 1,), "int32")
        answer = cost(
            called("_flash_attention_forward", *tensors, place, place, rows, columns, 0.0, False)
        )
        assert (answer.flops, answer.exact) == (expected, True)


def test_the_bound_for_sequences_of_several_lengths_lies_between_torchs_two_counts() -> None:
    counted = flop_counter.flop_registry[torch.ops.aten._flash_attention_forward]
    for _ in range(40):
        lengths = [CHOICE.randint(0, 9) for _ in range(CHOICE.randint(1, 5))]
        starts = torch.tensor([0, *lengths]).cumsum(0)
        total, longest = sum(lengths), max(lengths)
        operand = torch.empty(total, 2, 8)
        exact = counted(operand, operand, operand, starts, starts, longest, longest)
        padded = counted(operand, operand, operand, *[starts.to("meta")] * 2, longest, longest)
        tensors = plain(*[(total, 2, 8)] * 3)
        place = Tensor((len(lengths) + 1,), "int64")
        call = called("_flash_attention_forward", *tensors, place, place, longest, longest, 0.0)
        answer = cost(call)
        assert answer.flops is not None
        assert exact <= answer.flops <= padded
        assert answer.flops == exact or not answer.exact


def leaf(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize("kwargs", [{}, {"is_causal": True}, {"scale": 0.5}, {"dropout_p": 0.0}])
def test_torchs_own_calls_cost_what_flop_counter_mode_counts(kwargs: dict[str, Any]) -> None:
    for _ in range(5):
        batch, heads, rows, columns = (CHOICE.randint(1, 5) for _ in range(4))
        query = leaf(batch, heads, rows, 16)
        key, value = leaf(batch, heads, columns, 16), leaf(batch, heads, columns, 16)
        (call,) = recorded(python_calls, partial(attend, query, key, value, **kwargs))
        with FlopCounterMode(display=False) as forward:
            out = attend(query, key, value, **kwargs)
        with FlopCounterMode(display=False) as backward:
            out.sum().backward()
        counted = flop_counter.sdpa_flop_count(query.shape, key.shape, value.shape)
        assert cost(call).flops == counted
        assert cost(call, "bprop").flops == counted // 2 * 5
        # FlopCounterMode has no formula for the kernels of the CPU.
        assert forward.get_total_flops() in (0, counted)
        assert backward.get_total_flops() in (0, counted // 2 * 5)


@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_every_attention_operator_that_the_cpu_runs_has_a_cost(mask: str | None) -> None:
    query, key, value = leaf(2, 4, 3, 16), leaf(2, 4, 5, 16), leaf(2, 4, 5, 16)
    given = None if mask is None else torch.ones(3, 5, dtype=getattr(torch, mask))

    def step() -> None:
        attend(query, key, value, given).sum().backward()

    calls = [call for call in recorded(aten_calls, step) if "attention" in call.op]
    assert len(calls) == 2  # forward and backward
    counted = 2 * (2 * 4 * 3 * 5) * 32
    assert [cost(call).flops for call in calls] == [counted, counted // 2 * 5]
    assert all(cost(call).bytes is not None for call in calls)


def test_attention_by_single_products_has_four_in_its_backward_pass() -> None:
    query, key, value = leaf(2, 4, 3, 16), leaf(2, 4, 5, 16), leaf(2, 4, 5, 8)
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward:
            out = attend(query, key, value)
        with FlopCounterMode(display=False) as backward:
            out.sum().backward()
    call = called("_scaled_dot_product_attention_math", *plain(query.shape, key.shape, value.shape))
    assert cost(call).flops == forward.get_total_flops()
    assert cost(call, "bprop").flops == backward.get_total_flops()


def test_a_whole_layer_counts_the_products_of_its_steps() -> None:
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        calls = recorded(aten_calls, lambda: layer(x, x, x))
    (call,) = (call for call in calls if call.op == "_native_multi_head_attention")
    with FlopCounterMode(display=False) as counted:
        layer(x.requires_grad_(), x, x)  # not the inference path
    assert cost(call).flops == counted.get_total_flops()


def test_every_attention_operator_of_torch_has_a_formula() -> None:
    schemas = torch._C._jit_get_all_schemas()
    words = ("attention", "scaled_dot", "_varlen_attn", "multi_head")
    names = {schema.name for schema in schemas if any(word in schema.name for word in words)}
    left_out = {"aten::_fused_sdp_choice", "aten::_nested_tensor_softmax_with_shape"}
    known = {name for name in names if find(called(name.removeprefix("aten::"))) is not None}
    assert len(known) > 20
    assert names - known - left_out == set()
