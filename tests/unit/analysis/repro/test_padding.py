"""Sizes, types and layouts of a call's arguments for its variants."""

import pytest

from fastprof.analysis.repro.padding import channels_last, in_type, padded
from fastprof.model.call import Arg, Call, Tensor


def call(op: str, *values: object, dtype: str = "bfloat16") -> Call:
    """A call; tuples of sizes are tensors of this type."""
    made = (Tensor(v, dtype) if isinstance(v, tuple) else v for v in values)
    return Call("aten", op, tuple(Arg("", value) for value in made))


def shapes(of: Call) -> list[tuple[int, ...]]:
    return [arg.value.shape for arg in of.args if isinstance(arg.value, Tensor)]


@pytest.mark.parametrize(
    ("given", "text", "wanted", "useful"),
    [
        (call("mm", (9, 50), (50, 7)), "M 7 to 8, K 50 to 56", [(9, 56), (56, 8)], 350 / 448),
        (call("linear", (2, 9, 64), (50257, 64), (50257,)), "M 50257 to 50304",
         [(2, 9, 64), (50304, 64), (50304,)], 50257 / 50304),
        (call("addmm", (7,), (9, 50), (50, 7)), "M 7 to 8, K 50 to 56",
         [(8,), (9, 56), (56, 8)], 350 / 448),
        (call("bmm", (3, 9, 50), (3, 50, 8)), "K 50 to 56", [(3, 9, 56), (3, 56, 8)], 50 / 56),
        (call("conv2d", (2, 3, 9, 9), (12, 3, 5, 5), (12,)), "K 12 to 16",
         [(2, 3, 9, 9), (16, 3, 5, 5), (16,)], 12 / 16),  # not the colours of images
        (call("conv_transpose2d", (2, 12, 9, 9), (12, 8, 5, 5)), "C 12 to 16",
         [(2, 16, 9, 9), (16, 8, 5, 5)], 12 / 16),
        (call("_scaled_mm", (16, 24), (24, 32), dtype="float8_e4m3fn"), None, [], 1),
        (call("mm", (16, 24), (24, 32), dtype="float8_e4m3fn"), "K 24 to 32",
         [(16, 32), (32, 32)], 24 / 32),
    ],
)  # fmt: skip
def test_sizes_are_padded_as_advice_says(given, text, wanted, useful):
    result = padded(given)
    if text is None:
        assert result is None
        return
    changed, found_text, share = result
    assert sorted(found_text.split(", ")) == sorted(text.split(", "))
    assert shapes(changed) == wanted
    assert share == pytest.approx(useful)


def test_rows_are_padded_where_they_are_contiguous():
    values = Tensor((9, 64), "float16", (1, 9)), Tensor((64, 32), "float16", (32, 1))
    changed, text, _ = padded(Call("aten", "mm", tuple(Arg("", v) for v in values)))
    assert text == "N 9 to 16"
    assert changed.args[0].value == Tensor((16, 64), "float16", (1, 16))


def test_padded_heads_keep_the_scale_of_attention():
    heads = (1, 2, 9, 30)
    changed, text, useful = padded(
        call("scaled_dot_product_attention", heads, heads, heads, None, 0.0, True)
    )
    assert text == "E 30 to 32, V 30 to 32"
    assert shapes(changed) == [(1, 2, 9, 32)] * 3
    assert [arg.value for arg in changed.args[3:]] == [None, 0.0, True, 30**-0.5]
    assert useful == pytest.approx(30 / 32)


@pytest.mark.parametrize(
    "given",
    [
        call("mm", (8, 16), (16, 32)),
        call("conv2d", (2, 12, 9, 9), (12, 6, 5, 5), None, (1, 1), (1, 1), (1, 1), 2),  # groups
        call("relu", (7, 7)),
        Call(
            "torch.nn.functional",
            "conv2d",
            (
                *call("conv2d", (2, 12, 9, 9), (12, 6, 5, 5)).args,
                Arg("groups", 2),
            ),
        ),
    ],
)
def test_nothing_is_padded_that_need_not_or_cannot_be(given):
    assert padded(given) is None


def test_images_and_filters_are_in_channels_last():
    changed = channels_last(call("conv2d", (2, 8, 5, 6), (4, 8, 3, 3), (4,)))
    assert [arg.value.strides for arg in changed.args] == [
        (240, 1, 48, 8), (72, 1, 24, 8), None,
    ]  # fmt: skip
    once_more = channels_last(changed)
    assert once_more is None
    assert channels_last(call("conv2d", (2, 8, 1, 1), (4, 8, 1, 1))) is None  # both layouts
    assert channels_last(call("batch_norm", (8, 4))) is None


def test_only_tensors_of_float32_change_their_type():
    given = call("linear", (8, 4), (16, 4), None, dtype="float")
    assert [a.value and a.value.dtype for a in in_type(given, "float16").args] == [
        "float16", "float16", None,
    ]  # fmt: skip
    assert in_type(call("linear", (8, 4), (16, 4), dtype="float64"), "float16") is None
