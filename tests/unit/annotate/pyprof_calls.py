"""The calls of PyProf's NVTX test, which its hooks record; in fp32 and small sizes.

Each is a name, positional arguments and keyword arguments. `R` is a random tensor of a shape, `I` a
tensor of indices below a number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class R:
    """A random tensor."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class I:  # noqa: E742
    """A tensor of int64 below a number."""

    below: int
    shape: tuple[int, ...]


def _named(**named: Any) -> dict[str, Any]:
    return named


_IMAGE = R((1, 3, 32, 32))
_PLAIN = _named(size_average=None, reduce=None, reduction="mean")
_PAIR = (R((32, 128)), R((32, 128)))
_POOL = _named(kernel_size=5, stride=2, padding=2)
_AVERAGE = _POOL | _named(ceil_mode=True, count_include_pad=False)
_MOST = _POOL | _named(return_indices=True, ceil_mode=True)
_STATISTICS = _named(weight=None, bias=None, momentum=0.1, eps=1e-05)


def _convolutions() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for dimensions, size in ((1, (24,)), (2, (24, 24)), (3, (8, 12, 12))):
        x, weight = R((2, 3, *size)), R((4, 3, *(3,) * dimensions))
        grouped = R((2, 6, *size))
        name = f"conv{dimensions}d"
        yield name, (x, weight), {}
        yield name, (x, weight), _named(bias=R((4,)))
        yield name, (x, weight), _named(stride=2)
        yield name, (x, weight), _named(dilation=2)
        yield name, (grouped, weight), _named(groups=2)
        yield name, (x, weight), _named(padding=6)
        x, weight = R((2, 8, *(5,) * dimensions)), R((8, 6, *(3,) * dimensions))
        name = f"conv_transpose{dimensions}d"
        yield name, (x, weight), {}
        yield name, (x, weight), _named(bias=R((6,)))
        yield name, (x, weight), _named(stride=2)
        yield name, (x, weight), _named(padding=3)
        yield name, (x, weight), _named(output_padding=2, dilation=3)
        yield name, (x, weight), _named(groups=2)
        yield name, (x, weight), _named(dilation=2)


def _pooling() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for dimensions in (1, 2, 3):
        x = R((1, 4, *(16,) * dimensions))
        yield f"avg_pool{dimensions}d", (x,), _AVERAGE
        yield f"adaptive_avg_pool{dimensions}d", (x,), _named(output_size=5)
        yield f"max_pool{dimensions}d", (x,), _MOST
        yield f"adaptive_max_pool{dimensions}d", (x,), _named(output_size=5, return_indices=True)
        pooled = (1, 4, *(4,) * dimensions)
        unpool = _named(kernel_size=2, stride=2)
        yield f"max_unpool{dimensions}d", (R(pooled), I(4, pooled)), unpool
    yield "lp_pool1d", (R((1, 4, 16)), 2, 3), _named(stride=2, ceil_mode=True)
    yield "lp_pool2d", (R((1, 4, 16, 16)), 2, 3), _named(stride=2, ceil_mode=True)


CALLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    *_convolutions(),
    ("unfold", (_IMAGE, (4, 5)), _named(dilation=2)),
    ("unfold", (_IMAGE, (4, 5)), _named(padding=2)),
    ("unfold", (_IMAGE, (4, 5)), _named(stride=2)),
    ("fold", (R((3, 20, 20)), (4, 5), (1, 1)), {}),
    *_pooling(),
    ("threshold", (_IMAGE, 6, 6), _named(inplace=False)),
    ("threshold_", (_IMAGE, 6, 6), {}),
    ("relu", (_IMAGE,), _named(inplace=False)),
    ("relu_", (_IMAGE,), {}),
    ("hardtanh", (_IMAGE,), _named(min_val=-1.0, max_val=1.0, inplace=False)),
    ("hardtanh_", (_IMAGE,), _named(min_val=-1.0, max_val=1.0)),
    ("relu6", (_IMAGE,), _named(inplace=False)),
    ("elu", (_IMAGE,), _named(alpha=1.0, inplace=False)),
    ("elu_", (_IMAGE,), _named(alpha=1.0)),
    ("selu", (_IMAGE,), {}),
    ("celu", (_IMAGE,), _named(alpha=1.0, inplace=False)),
    ("leaky_relu", (_IMAGE,), _named(negative_slope=0.01, inplace=False)),
    ("leaky_relu_", (_IMAGE,), _named(negative_slope=0.01)),
    ("prelu", (_IMAGE, R((1,))), {}),
    ("rrelu", (_IMAGE,), _named(lower=0.125, upper=1 / 3, training=False, inplace=False)),
    ("rrelu_", (_IMAGE,), _named(lower=0.125, upper=1 / 3, training=False)),
    ("glu", (_IMAGE,), _named(dim=-1)),
    ("logsigmoid", (_IMAGE,), {}),
    ("hardshrink", (_IMAGE,), _named(lambd=0.5)),
    ("tanhshrink", (_IMAGE,), {}),
    ("softsign", (_IMAGE,), {}),
    ("softplus", (_IMAGE,), _named(beta=1, threshold=20)),
    ("softmin", (R((16, 64)),), _named(dim=1, _stacklevel=3)),
    ("softmax", (R((16, 64)),), _named(dim=1, _stacklevel=3)),
    ("softshrink", (_IMAGE,), _named(lambd=0.5)),
    ("gumbel_softmax", (R((16, 64)),), _named(tau=1, hard=False, dim=-1)),
    ("log_softmax", (R((16, 64)),), _named(dim=-1, _stacklevel=3)),
    ("torch.tanh", (_IMAGE,), {}),
    ("torch.sigmoid", (_IMAGE,), {}),
    ("batch_norm", (_IMAGE, R((3,)), R((3,))), _STATISTICS | _named(training=False)),
    (
        "instance_norm",
        (_IMAGE,),
        _named(running_mean=R((3,)), running_var=R((3,)), use_input_stats=True) | _STATISTICS,
    ),
    ("layer_norm", (_IMAGE, (3, 32, 32)), _named(weight=None, bias=None, eps=1e-05)),
    ("local_response_norm", (R((4, 8, 6, 6)), 2), _named(alpha=0.0001, beta=0.75, k=1.0)),
    ("normalize", (R((4, 8, 6, 6)),), _named(p=2, dim=1, eps=1e-12, out=None)),
    ("linear", (R((4, 6, 128)), R((25, 128))), _named(bias=None)),
    ("dropout", (_IMAGE,), _named(p=0.5, training=True, inplace=False)),
    ("alpha_dropout", (_IMAGE,), _named(p=0.5, training=True, inplace=False)),
    ("dropout2d", (_IMAGE,), _named(p=0.5, training=True, inplace=False)),
    ("dropout3d", (R((2, 3, 4, 5, 6)),), _named(p=0.5, training=True, inplace=False)),
    (
        "embedding",
        (I(64, (8, 16)), R((64, 32))),
        _named(padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False),
    ),
    (
        "embedding_bag",
        (I(64, (8, 16)), R((64, 32))),
        _named(offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean"),
    ),
    ("one_hot", (I(10, (8, 16)),), _named(num_classes=10)),
    ("pairwise_distance", _PAIR, _named(p=2.0, eps=1e-06, keepdim=False)),
    ("cosine_similarity", _PAIR, _named(dim=1, eps=1e-8)),
    ("pdist", (R((16, 16)),), _named(p=2)),
    ("binary_cross_entropy", (I(2, (32, 8)), I(2, (32, 8))), {}),
    ("binary_cross_entropy_with_logits", _PAIR, {}),
    (
        "poisson_nll_loss",
        _PAIR,
        _named(log_input=True, full=False, eps=1e-08) | _PLAIN,
    ),
    ("cosine_embedding_loss", (*_PAIR, R((32,))), _named(margin=0) | _PLAIN),
    (
        "cross_entropy",
        (R((32, 128)), I(100, (32,))),
        _named(weight=None, ignore_index=-100) | _PLAIN,
    ),
    ("ctc_loss", (R((50, 2, 20)), I(19, (2, 5)), (50, 50), (5, 5)), {}),
    ("hinge_embedding_loss", (R((128, 32)), R((32,))), _named(margin=1.0) | _PLAIN),
    ("kl_div", _PAIR, _named(size_average=None, reduce=None, reduction="batchmean")),
    ("mse_loss", _PAIR, _PLAIN),
    ("margin_ranking_loss", (*_PAIR, R((32, 128))), _named(margin=0) | _PLAIN),
    ("multilabel_margin_loss", (R((64,)), I(10, (64,))), _PLAIN),
    ("nll_loss", (R((64, 128)), I(10, (64,))), _named(weight=None, ignore_index=-100) | _PLAIN),
    ("smooth_l1_loss", _PAIR, _PLAIN),
    ("soft_margin_loss", _PAIR, _PLAIN),
    (
        "triplet_margin_loss",
        (*_PAIR, R((32, 128))),
        _named(margin=1.0, p=2, eps=1e-06, swap=False) | _PLAIN,
    ),
    ("pixel_shuffle", (R((2, 8, 4, 4)), 2), {}),
    ("pad", (R((2, 8, 4, 4)), (3, 3)), _named(mode="constant", value=0)),
    (
        "interpolate",
        (R((2, 8, 4, 4)),),
        _named(size=None, scale_factor=2, mode="nearest", align_corners=None),
    ),
    (
        "grid_sample",
        (R((2, 8, 6, 6)), R((2, 4, 4, 2))),
        _named(mode="bilinear", padding_mode="zeros"),
    ),
    ("affine_grid", (R((4, 2, 3)), (4, 8, 6, 6)), {}),
)
