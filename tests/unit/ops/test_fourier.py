"""Fourier transforms: FLOPs and bytes by hand, shapes by torch."""

import pytest

from fastprof.model.call import UNKNOWN, Call
from fastprof.ops import Cost, work
from unit.ops.ops_calls import aten, fp32, tensor
from unit.ops.ops_examples import Example

X, Z = fp32(3, 8, 16), tensor("complex64", 3, 8, 9)
# Transforms of 16 points: 24 of them, 2.5 * 16 * 4 for real ones.
REAL = 24 * 160

EXAMPLES = [
    Example(aten("_fft_r2c", X, (2,), 0, True), REAL, 4 * 384 + 8 * 216, "[3,8,16]fp32"),
    Example(aten("_fft_r2c", X, (-1,), 0, False), REAL, 4 * 384 + 8 * 384),
    Example(aten("_fft_c2r", Z, (2,), 0, 16), REAL, 8 * 216 + 4 * 384, "[3,8,9]complex64"),
    # Two dimensions together: 3 transforms of 128 points, 7 steps.
    Example(aten("_fft_r2c", X, (1, 2), 0, True), 3 * 320 * 7, 4 * 384 + 8 * 216),
    Example(aten("_fft_c2c", tensor("complex64", 4, 32), (1,), 0, True), 4 * 5 * 32 * 5, 2 * 1024),
    Example(aten("_fft_r2c", X, (2,), 0, True), REAL, 4 * 384 + 8 * 216, direction="bprop"),
    Example(aten("_fft_r2c", tensor("float16", 5, 1), (1,), 0, True), 0, 5 * (2 + 4)),
]


def test_what_is_not_told_is_not_guessed() -> None:
    unknown = work(aten("_fft_r2c", X, UNKNOWN, 0, True), "fprop")
    assert unknown is not None and unknown.cost == Cost(None, 4 * 384 + 8 * 216, False)
    assert work(aten("_fft_c2r", Z, (2,), 0, UNKNOWN), "fprop") is None
    assert work(aten("_fft_c2c", Z, (3,), 0, True), "fprop") is None


def test_sizes_of_results_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from unit.ops.overload_calls import check_bytes, ran

    x = torch.ones(3, 6, 10)
    for dims in ([2], [1, 2], [0], [2, 0]):
        check_bytes(ran("_fft_r2c", x, dims, 0, True))
        check_bytes(ran("_fft_r2c", x, dims, 0, False))
        z = torch.fft.rfftn(x, dim=dims)
        check_bytes(ran("_fft_c2r", z, dims, 0, x.shape[dims[-1]]))
        check_bytes(ran("_fft_c2c", z, dims, 0, True))


def test_a_transform_without_a_shape_has_no_cost() -> None:
    assert work(Call("aten", "_fft_c2c", ()), "fprop") is None
