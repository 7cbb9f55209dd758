"""Attention of libraries runs in products, also where a capture does not record its arguments."""

import pytest

from fastprof._core import _calls
from fastprof.model.call import Call
from fastprof.profile.calls import cost_bits


@pytest.mark.parametrize(
    "mod, op, is_product",
    [
        ("aten", "mm", True),
        ("xformers", "efficient_attention", True),
        ("aten", "FusedAttnFunc", True),
        ("flash_attn", "_flash_attn_forward", True),
        ("aten", "softmax", False),
        ("bitsandbytes", "quantize_4bit", False),
    ],
)
def test_attention_of_libraries_is_of_the_family_of_products(mod, op, is_product):
    assert bool(cost_bits(Call(mod, op, ()), False) & _calls.FAMILY) == is_product
