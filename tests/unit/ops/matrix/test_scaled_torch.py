"""Products of small types in torch's actual calls."""

from typing import Any

import pytest

from fastprof.ops import why_unknown, work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import aten_calls, recorded  # noqa: E402


def random_float8(*shape: int) -> Any:
    return torch.randn(shape).to(torch.float8_e4m3fn)


def costs(function: Any, name: str) -> list[Any]:
    try:
        calls = [call for call in recorded(aten_calls, function) if call.op == name]
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"torch does not do it on this CPU: {error}")
    assert calls
    result = [work(call, "fprop") for call in calls]
    assert None not in result, why_unknown(calls[0], "fprop")
    return [each.cost for each in result]


def test_scaled_products_count_what_torch_counts() -> None:
    scale = torch.tensor(1.0)

    def product() -> Any:
        left, right = random_float8(16, 32), random_float8(64, 32).t()
        return torch._scaled_mm(left, right, scale, scale, out_dtype=torch.bfloat16)

    (cost,) = costs(product, "_scaled_mm")
    with FlopCounterMode(display=False) as counter:
        product()
    assert cost.flops == counter.get_total_flops() == 2 * 16 * 64 * 32
    # The recorder stores the type as text.
    assert cost.bytes == 16 * 32 + 32 * 64 + 4 + 4 + 2 * 16 * 64


def test_products_of_bytes_have_a_cost() -> None:
    left = torch.ones(32, 16, dtype=torch.int8)
    right = torch.ones(16, 8, dtype=torch.int8)
    (cost,) = costs(lambda: torch._int_mm(left, right), "_int_mm")
    assert (cost.flops, cost.bytes) == (2 * 32 * 8 * 16, 32 * 16 + 16 * 8 + 4 * 32 * 8)


def test_a_grouped_product_counts_all_rows() -> None:
    left = torch.ones(48, 32, dtype=torch.bfloat16)
    right = torch.ones(3, 32, 64, dtype=torch.bfloat16)
    ends = torch.tensor([16, 32, 48], dtype=torch.int32)
    (cost,) = costs(lambda: torch._grouped_mm(left, right, offs=ends), "_grouped_mm")
    assert cost.flops == 2 * 48 * 64 * 32 and not cost.exact


def test_packed_weights_have_a_cost() -> None:
    x = torch.ones(4, 64, dtype=torch.bfloat16)
    weight = torch.ones(32, 64, dtype=torch.int8)
    scales = torch.ones(32, dtype=torch.bfloat16)
    (cost,) = costs(lambda: torch._weight_int8pack_mm(x, weight, scales), "_weight_int8pack_mm")
    assert cost.flops == 2 * 4 * 32 * 64
    assert cost.bytes == 2 * 256 + 32 * 64 + 2 * 32 + 2 * 128
