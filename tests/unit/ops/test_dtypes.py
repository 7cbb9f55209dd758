"""Names, sizes and promotion of types."""

import pytest

from fastprof.model.call import Tensor
from fastprof.ops.dtypes import item_size, promote, result_type, short_type


@pytest.mark.parametrize(
    ("name", "short", "size"),
    [
        ("float16", "fp16", 2),
        ("float32", "fp32", 4),
        ("torch.float32", "fp32", 4),
        ("float", "fp32", 4),
        ("double", "fp64", 8),
        ("c10::Half", "fp16", 2),
        ("c10::BFloat16", "bf16", 2),
        ("torch.bfloat16", "bf16", 2),
        ("float8_e4m3fn", "fp8", 1),
        ("float8_e5m2", "fp8", 1),
        ("c10::Float8_e5m2", "fp8", 1),
        ("signed char", "int8", 1),
        ("unsigned char", "uint8", 1),
        ("short", "int16", 2),
        ("int", "int32", 4),
        ("long int", "int64", 8),
        ("long", "int64", 8),
        ("bool", "bool", 1),
        ("complex64", "complex64", 8),
        ("c10::complex<double>", "complex128", 16),
        (None, "na", None),
        ("", "na", None),
        ("Scalar", "na", None),
        ("Int", "na", None),
    ],
)
def test_type_names_in_every_spelling(name, short, size):
    assert short_type(name) == short
    assert item_size(name) == size


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("float32", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float64", "float64"),
        ("int64", "float16", "float16"),
        ("bool", "uint8", "uint8"),
        ("uint8", "int8", "int16"),
        ("uint8", "int32", "int32"),
        ("int32", "int64", "int64"),
        ("uint16", "int32", None),
        ("float8_e5m2", "float16", None),
        ("complex64", "float32", "complex64"),
        ("complex64", "float64", "complex128"),
        ("complex64", "int64", "complex64"),
        ("complex32", "float32", "complex64"),
    ],
)
def test_promotion_is_torchs_table(left, right, common):
    assert promote(left, right) == common
    assert promote(right, left) == common


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([Tensor((2,), "float16"), 1.5], "float16"),
        ([Tensor((2,), "float16"), Tensor((), "float64")], "float16"),
        ([Tensor((), "float16"), Tensor((), "float64")], "float64"),
        ([Tensor((2,), "int32"), Tensor((), "float64")], "float64"),
        ([Tensor((2,), "int32"), 1.5], "float32"),
        ([Tensor((2,), "int32"), True], "int32"),
        ([Tensor((2,), "bool"), 1], "int64"),
        ([Tensor((2,), "float64"), 1j], "complex128"),
        ([Tensor((2,), None), 1.5], None),
        ([Tensor((), None), 1.5], None),
        ([Tensor((2,), "float32"), Tensor((), None)], "float32"),
    ],
)
def test_scalars_do_not_widen_within_their_category(operands, expected):
    assert result_type(operands) == expected
