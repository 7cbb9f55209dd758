"""Pooling, resizing, padding, dropout and random numbers against torch: sizes match torch's."""

import random
from typing import Any

import pytest

from fastprof.ops import has_model, work

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from support.record_calls import python_calls, recorded  # noqa: E402
from unit.ops.ops_examples import cost  # noqa: E402
from unit.ops.overload_calls import ran  # noqa: E402

MODULES = ("images", "random")
functional = torch.nn.functional
random.seed(17)
SIDE = random.randint(7, 11)


def x(dimensions: int = 2, dtype: Any = torch.float32) -> Any:
    return torch.rand(2, 3, *range(SIDE, SIDE + dimensions), dtype=dtype)


def windows() -> list[tuple[int, int, int, int, bool]]:
    """Kernel, stride, padding, dilation and ceil_mode that fit an image."""
    result = []
    for _ in range(12):
        kernel = random.randint(1, 3)
        padding, dilation = random.randint(0, kernel // 2), random.randint(1, 2)
        result.append((kernel, random.randint(1, 4), padding, dilation, random.random() < 0.5))
    return result


POOLS = [
    *(
        (f"max_pool{n}d_with_indices", (x(n), [k] * n, [s] * n, [p] * n, [d] * n, ceil), 0)
        for n in (2, 3)
        for k, s, p, d, ceil in windows()
    ),
    *(
        (f"avg_pool{n}d", (x(n), [k] * n, [s] * n, [p] * n, ceil), 0)
        for n in (1, 2, 3)
        for k, s, p, _, ceil in windows()
    ),
    *((f"_adaptive_avg_pool{n}d", (x(n), [4] * n), 0) for n in (2, 3)),
    *((f"adaptive_avg_pool{n}d", (x(n), [3] * n), 0) for n in (1, 2, 3)),
    *((f"adaptive_max_pool{n}d", (x(n), [4] * n), 0) for n in (1, 2, 3)),
    *(
        # Window positions are one number for each channel and dimension.
        (f"fractional_max_pool{n}d", (x(n), [2] * n, [3] * n, s), -s.numel() * 4)
        for n in (2, 3)
        for s in [torch.rand(2, 3, n)]
    ),
]
PLANE, SPACE = (2, 3, 4, 4), (2, 3, 4, 4, 4)
UNPOOLS = [
    ("max_unpool2d", (torch.rand(PLANE), torch.arange(96).view(PLANE) % 16, [8, 8]), 0),
    (
        "max_unpool3d",
        (torch.rand(SPACE), torch.arange(384).view(SPACE) % 64, [8] * 3, [2] * 3, [0] * 3),
        0,
    ),
]


def corners(name: str) -> tuple[bool, ...]:
    return () if "nearest" in name else (False,)


RESIZES = [
    (name, (x(n), [SIDE + 3] * n, *corners(name)), 0)
    for name, n in (
        *((f"upsample_nearest{n}d", n) for n in (1, 2, 3)),
        *((f"_upsample_nearest_exact{n}d", n) for n in (1, 2, 3)),
        ("upsample_linear1d", 1),
        ("upsample_bilinear2d", 2),
        ("upsample_trilinear3d", 3),
        ("upsample_bicubic2d", 2),
        ("_upsample_bilinear2d_aa", 2),
        ("_upsample_bicubic2d_aa", 2),
        ("_upsample_lanczos2d_aa", 2),
    )
]
VECTORS = [
    (f"{name}.vec", (args[0], None, *args[2:], [1.3] * (args[0].dim() - 2)), 0)
    for name, args, _ in RESIZES
]
RESIZE_BACKWARD = [
    (f"{name}_backward", (torch.rand(2, 3, *args[1]), args[1], list(args[0].shape), *args[2:]))
    for name, args, _ in RESIZES
]
KINDS = ("reflection", "replication")
PADS = [
    *((f"{kind}_pad{n}d", (x(n), [1, 2] * n), 0) for kind in KINDS for n in (1, 2, 3)),
    ("constant_pad_nd", (x(), [1, 2, 0, 3], 0.5), 0),
    ("pad", (x(1), [1, 2], "reflect"), 0),
    ("_pad_circular", (x(), [1, 2, 2, 1]), 0),
    ("_pad_enum", (x(1), [1, 2], 2), 0),
    ("im2col", (x(), [2, 3], [1, 1], [0, 1], [2, 2]), 0),
    ("col2im", (torch.rand(2, 3 * 6, 16), [5, 6], [2, 3], [1, 1], [0, 0], [1, 1]), 0),
]
GRID2, GRID3 = torch.rand(2, 5, 4, 2), torch.rand(2, 5, 4, 3, 3)
FILLS = ("uniform", "normal", "log_normal", "exponential", "cauchy", "random")
P = torch.rand(3, 4)
NUMBERS = [
    ("grid_sampler_2d", (x(2), GRID2, 0, 0, False), 0),
    ("grid_sampler", (x(2), GRID2, 1, 0, False), 0),
    ("grid_sampler_3d", (x(3), GRID3, 0, 0, False), 0),
    ("affine_grid_generator", (torch.rand(2, 2, 3), [2, 3, 4, 5], False), 0),
    ("native_dropout", (x(), 0.5, True), 0),
    ("native_dropout_backward", (x(), x() > 0.5, 2.0), 0),
    # Tensors filled in place are not read: torch's argument is also its result.
    *((f"{name}_", (x(),), "x") for name in FILLS),
    ("geometric_", (x(), 0.5), "x"),
    ("bernoulli_.float", (x(), 0.5), "x"),
    ("bernoulli_.Tensor", (P.clone(), torch.rand(4)), -48),
    ("bernoulli", (P,), 0),
    ("bernoulli.p", (P, 0.5), -48),
    ("rand", ([2, 3],), 0),
    ("randn", ([2, 3],), 0),
    ("randint", (9, [2, 3]), 0),
    ("randint.low", (1, 9, [2, 3]), 0),
    ("randperm", (7,), 0),
    ("rand_like", (P,), -48),
    ("randn_like", (P,), -48),
    ("randint_like", (P, 9), -48),
    ("randint_like.low_dtype", (P, 1, 9), None),
    ("normal.Tensor_float", (P, 2.0), 0),
    ("normal.float_Tensor", (0.0, P), 0),
    ("normal.Tensor_Tensor", (P, P), 0),
    ("normal.float_float", (0.0, 1.0, [2, 3]), 0),
    ("multinomial", (P, 2), 0),
    ("poisson", (P,), 0),
    ("_standard_gamma", (P,), 0),
    ("_sample_dirichlet", (P,), 0),
    ("binomial", (P, P), 0),
]
BYTES = [*POOLS, *UNPOOLS, *RESIZES, *VECTORS, *PADS, *NUMBERS]
Y2, Y3 = torch.rand(PLANE), torch.rand(SPACE)
INDICES2, INDICES3 = torch.zeros(PLANE, dtype=torch.long), torch.zeros(SPACE, dtype=torch.long)
X2, X3 = torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8, 8)
SOME = x()
# Backward operators do not read x; dropouts and maxima have internal tensors.
OTHERS = [
    *RESIZE_BACKWARD,
    ("max_pool2d_with_indices_backward", (Y2, X2, [2, 2], [2, 2], [0, 0], [1, 1], False, INDICES2)),
    (
        "max_pool3d_with_indices_backward",
        (Y3, X3, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, INDICES3),
    ),
    ("avg_pool2d_backward", (Y2, X2, [2, 2], [2, 2], [0, 0], False, True, None)),
    ("avg_pool3d_backward", (Y3, X3, [2] * 3, [2] * 3, [0] * 3, False, True, None)),
    ("_adaptive_avg_pool2d_backward", (Y2, X2)),
    ("_adaptive_avg_pool3d_backward", (Y3, X3)),
    ("adaptive_max_pool2d_backward", (Y2, X2, INDICES2)),
    ("adaptive_max_pool3d_backward", (Y3, X3, INDICES3)),
    ("fractional_max_pool2d_backward", (Y2, X2, [2, 2], [4, 4], INDICES2)),
    ("fractional_max_pool3d_backward", (Y3, X3, [2] * 3, [4] * 3, INDICES3)),
    *((f"max_pool{n}d", (x(n), [2] * n)) for n in (1, 2, 3)),
    ("max_pool1d_with_indices", (x(1), [2])),
    *(
        (f"{kind}_pad{n}d_backward", (functional.pad(x(n), [1, 1] * n), x(n), [1, 1] * n))
        for kind in KINDS
        for n in (1, 2, 3)
    ),
    ("grid_sampler_2d_backward", (torch.rand(2, 3, 5, 4), X2, GRID2, 0, 0, False, [True, True])),
    ("grid_sampler_3d_backward", (torch.rand(2, 3, 5, 4, 3), X3, GRID3, 0, 0, False, [True, True])),
    ("affine_grid_generator_backward", (torch.rand(2, 4, 5, 2), [2, 3, 4, 5], False)),
    *(
        (f"{name}{end}", (SOME, 0.5, True))
        for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
        for end in ("", "_")
    ),
    *((name, (SOME,)) for name in FILLS if name != "normal"),
    ("geometric", (SOME, 0.5)),
    ("normal_functional", (SOME,)),
]
# On GPUs only, or in scripted functions.
NOT_CALLED = {
    "_fused_dropout",
    "_masked_scale",
    "_philox_normal",
    "_philox_normal_",
    "_philox_uniform",
    "_philox_uniform_",
    "cudnn_affine_grid_generator",
    "cudnn_affine_grid_generator_backward",
    "cudnn_grid_sampler",
    "cudnn_grid_sampler_backward",
    "__interpolate",
    "__upsample",
    "__upsample_bilinear",
    "__upsample_nearest",
}
CASES = [case[:2] for case in BYTES] + OTHERS


@pytest.mark.parametrize("case", BYTES, ids=lambda case: case[0])
def test_bytes_are_those_of_what_goes_in_and_out(case: tuple[str, Any, Any]) -> None:
    name, args, besides = case
    done = ran(name, *args)
    result = cost(done.call)
    if besides is None:
        assert result.bytes is None
    elif besides == "x":
        assert result.bytes == done.written
    else:
        assert result.bytes == done.read + done.written + besides


def steps() -> dict[str, Any]:
    theta, columns = torch.rand(2, 2, 3), torch.rand(2, 12, 49)
    return {
        "max_pool2d": lambda leaf: functional.max_pool2d(leaf, 3, 2, 1),
        "max_pool2d_with_indices": lambda leaf: functional.max_pool2d(leaf, 2, return_indices=True)[
            0
        ],
        "avg_pool2d": lambda leaf: functional.avg_pool2d(leaf, 2, ceil_mode=True),
        "lp_pool2d": lambda leaf: functional.lp_pool2d(leaf, 2.0, 2),
        "adaptive_avg_pool2d": lambda leaf: functional.adaptive_avg_pool2d(leaf, (1, None)),
        "adaptive_max_pool2d": lambda leaf: functional.adaptive_max_pool2d(leaf, 3),
        "fractional_max_pool2d": lambda leaf: functional.fractional_max_pool2d(
            leaf, 2, output_ratio=(0.5, 0.5)
        ),
        "interpolate": lambda leaf: functional.interpolate(leaf, scale_factor=1.4, mode="bicubic"),
        "grid_sample": lambda leaf: functional.grid_sample(leaf, GRID2, align_corners=False),
        "affine_grid": lambda leaf: (
            functional.affine_grid(theta, [2, 3, 4, 5], align_corners=False).sum() + leaf.sum()
        ),
        "pad": lambda leaf: functional.pad(leaf, (1, 1, 2, 2), "replicate"),
        "unfold": lambda leaf: functional.unfold(leaf, (3, 2), padding=1),
        "fold": lambda leaf: functional.fold(columns, 8, 2).sum() + leaf.sum(),
        "dropout": lambda leaf: functional.dropout(leaf, 0.3),
        "dropout2d": lambda leaf: functional.dropout2d(leaf, 0.3),
        "alpha_dropout": lambda leaf: functional.alpha_dropout(leaf, 0.3, training=True),
        "feature_alpha_dropout": lambda leaf: functional.feature_alpha_dropout(leaf, 0.3, True),
    }


def test_random_numbers_of_python_have_a_cost() -> None:
    def draw() -> None:
        torch.rand(2, 3, dtype=torch.float64)
        torch.randn((2, 3))
        torch.randint(9, (2, 3))
        torch.randperm(9)
        torch.normal(0.0, 1.0, size=(2, 3))
        torch.normal(P, std=2.0)
        torch.rand_like(P, dtype=torch.float16)
        torch.bernoulli(P)
        torch.multinomial(P, num_samples=2)
        P.clone().uniform_(-1, 1).normal_(std=2.0).exponential_().random_(0, 9)

    calls = [call for call in recorded(python_calls, draw) if call.op != "clone"]
    assert len(calls) == 13
    assert [call for call in calls if not has_model(call)] == []


def test_gradients_of_an_affine_grid_count_what_torch_counts() -> None:
    theta, size = torch.rand(2, 2, 3, requires_grad=True), [2, 3, 4, 5]
    result = functional.affine_grid(theta, size, align_corners=False)
    with FlopCounterMode(display=False) as backward:
        result.sum().backward()
    (call,) = recorded(
        python_calls, lambda: functional.affine_grid(theta, size, align_corners=False)
    )
    forward, done = work(call, "fprop"), work(call, "bprop")
    assert forward is not None and done is not None
    assert done.cost.flops == backward.get_total_flops()
    # The forward product is inside the operator, where torch does not count.
    assert forward.cost.flops == done.cost.flops
