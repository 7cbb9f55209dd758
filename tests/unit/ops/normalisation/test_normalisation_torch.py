"""Norms against torch: overloads are read, bytes are those of inputs and outputs."""

import random
from typing import Any

import pytest

from fastprof.ops import has_model, work
from fastprof.ops.registry import find

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
from support.record_calls import aten_calls, python_calls, recorded  # noqa: E402
from unit.ops.ops_examples import cost  # noqa: E402
from unit.ops.overload_calls import ran, served_by  # noqa: E402

MODULES = ("normalisation",)
functional = torch.nn.functional
random.seed(11)
BATCH, CHANNELS, WIDTH = 2, 2 * random.randint(1, 4), random.randint(2, 9)
COUNT = BATCH * CHANNELS * WIDTH


def x(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(*(shape or (BATCH, CHANNELS, WIDTH)), dtype=dtype)


def c() -> Any:
    return torch.rand(CHANNELS) + 0.5


def d() -> Any:
    return torch.rand(WIDTH) + 0.5


FULL = (x(), c(), c(), c(), c())
SAVED = (c(), c(), c(), c(), c())
MEAN = torch.zeros(BATCH, CHANNELS, 1)
ALL = (True, True, True)

# (overload, arguments, bytes other than inputs and outputs: x read twice, running statistics
# written, weight or bias not passed to a backward operator)
READ_AND_WRITTEN = [
    ("native_layer_norm", (x(), [WIDTH], d(), d(), 1e-5), 0),
    ("native_layer_norm", (x(), [CHANNELS, WIDTH], None, None, 1e-5), 0),
    ("native_layer_norm_backward", (x(), x(), [WIDTH], MEAN, MEAN, d(), None, [1, 1, 0]), 0),
    ("_fused_rms_norm", (x(), [WIDTH], d(), 1e-5), 0),
    ("native_group_norm", (x(), c(), c(), BATCH, CHANNELS, WIDTH, 2, 1e-5), 4 * COUNT),
    (
        "native_group_norm_backward",
        (x(), x(), MEAN[:, :2, 0], MEAN[:, :2, 0], c(), BATCH, CHANNELS, WIDTH, 2, ALL),
        4 * 2 * COUNT,
    ),
    ("native_batch_norm", (*FULL, True, 0.1, 1e-5), 4 * (COUNT + 2 * CHANNELS)),
    ("native_batch_norm", (*FULL, False, 0.1, 1e-5), 0),
    ("native_batch_norm", (x(), None, None, None, None, True, 0.1, 1e-5), 4 * COUNT),
    ("_native_batch_norm_legit", (*FULL, True, 0.1, 1e-5), 4 * (COUNT + 2 * CHANNELS)),
    ("_native_batch_norm_legit.no_stats", (x(), c(), c(), True, 0.1, 1e-5), 4 * COUNT),
    ("_native_batch_norm_legit_functional", (*FULL, True, 0.1, 1e-5), 4 * COUNT),
    ("_native_batch_norm_legit_no_training", (*FULL, 0.1, 1e-5), 0),
    ("_batch_norm_with_update", (*FULL, 0.1, 1e-5), 4 * (COUNT + 2 * CHANNELS)),
    ("_batch_norm_with_update_functional", (*FULL, 0.1, 1e-5), 4 * COUNT),
    ("_batch_norm_no_update", (*FULL, 0.1, 1e-5), 0),
    # The running statistics are not read in training.
    (
        "native_batch_norm_backward",
        (x(), x(), *SAVED, True, 1e-5, ALL),
        4 * (2 * COUNT - 2 * CHANNELS),
    ),
    ("batch_norm_update_stats", (x(), c(), c(), 0.1), 4 * 2 * CHANNELS),
    ("renorm", (x(), 2, 1, 1.0), 0),
    ("renorm_", (x(), 2, 1, 1.0), 0),
    ("norm_except_dim", (x(), 2, 1), 0),
    ("_weight_norm_interface", (x(5, 6), x(5, 1), 0), 0),
    ("_weight_norm", (x(5, 6), x(5, 1), 0), 4 * 5),  # its norms, which are internal
    ("_weight_norm_interface_backward", (x(5, 6), x(5, 6), x(5, 1), x(5, 1), 0), 0),
    ("_weight_norm_differentiable_backward", (x(5, 6), x(5, 6), x(5, 1), x(5, 1), 0), 0),
]

# Internal tensors: statistics, which the outer operators do not return.
OUTER = [
    ("batch_norm", (*FULL, True, 0.1, 1e-5, False)),
    ("_batch_norm_impl_index", (*FULL, True, 0.1, 1e-5, False)),
    ("_batch_norm_impl_index_backward", (0, x(), x(), *SAVED, True, 1e-5, ALL, torch.empty(0))),
    ("batch_norm_backward", (x(), x(), *SAVED, True, 1e-5, ALL, torch.empty(0))),
    ("instance_norm", (*FULL, True, 0.1, 1e-5, False)),
    ("layer_norm", (x(), [WIDTH], d(), d())),
    ("group_norm", (x(), 2, c(), c())),
    ("rms_norm", (x(), [WIDTH], d())),
]
CASES = [case[:2] for case in READ_AND_WRITTEN] + OUTER
# These have no kernel without a GPU; their worked examples follow the schemas.
NOT_CALLED = {
    "_fused_rms_norm_backward",
    "batch_norm_backward_elemt",
    "batch_norm_backward_reduce",
    "batch_norm_elemt",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_stats",
    "cudnn_batch_norm",
    "cudnn_batch_norm_backward",
    "miopen_batch_norm",
    "miopen_batch_norm_backward",
}


@pytest.mark.parametrize("case", READ_AND_WRITTEN, ids=lambda case: case[0])
def test_bytes_are_those_of_what_goes_in_and_out(case: tuple[str, Any, int]) -> None:
    name, args, besides = case
    done = ran(name, *args)
    assert cost(done.call).bytes == done.read + done.written + besides


def modules() -> list[Any]:
    return [
        torch.nn.BatchNorm1d(CHANNELS),
        torch.nn.BatchNorm1d(CHANNELS, affine=False, track_running_stats=False),
        torch.nn.InstanceNorm1d(CHANNELS, affine=True),
        torch.nn.LayerNorm(WIDTH),
        torch.nn.LayerNorm((CHANNELS, WIDTH), elementwise_affine=False),
        torch.nn.GroupNorm(2, CHANNELS),
        torch.nn.RMSNorm(WIDTH),
        torch.nn.LocalResponseNorm(3),
    ]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("module", modules(), ids=lambda module: type(module).__name__)
def test_modules_have_a_cost_through_both_doors(module: Any, training: bool) -> None:
    def step() -> None:
        module.train(training)(x().requires_grad_()).sum().backward()

    (called,) = (call for call in recorded(python_calls, step) if find(call) and "norm" in call.op)
    served = served_by(*MODULES)
    dispatched = [call for call in recorded(aten_calls, step) if call.op in served]
    assert has_model(called) and work(called, "bprop") is not None
    assert [call for call in dispatched if not has_model(call)] == []
    assert dispatched or called.op in ("local_response_norm", "rms_norm")


def test_python_calls_as_they_come_have_the_cost() -> None:
    def step() -> None:
        functional.normalize(x(), dim=-1)
        torch.renorm(x(), 2, 0, 1.0)
        torch.batch_norm(*FULL, True, 0.1, 1e-5, False)
        torch.layer_norm(x(), (WIDTH,))
        functional.batch_norm(x(), c(), c(), training=True)

    calls = [call for call in recorded(python_calls, step) if "norm" in call.op]
    known = {call.op: work(call, "fprop") for call in calls}
    assert set(known) == {"normalize", "renorm", "batch_norm", "layer_norm"}
    assert None not in known.values()


def test_the_flops_of_a_forward_pass_are_the_operations_of_its_formula() -> None:
    # The same operations written out elementwise, counted by hand from torch's result.
    given, weight, bias = x(), d(), d()
    mean = given.mean(-1, keepdim=True)  # 1
    apart = given - mean  # 1
    variance = (apart * apart).mean(-1, keepdim=True)  # 2
    result = apart * (variance + 1e-5).rsqrt() * weight + bias  # (x - mean) again, 2; 1 and 1
    expected = functional.layer_norm(given, (WIDTH,), weight, bias)
    torch.testing.assert_close(result, expected)
    (call,) = recorded(python_calls, lambda: functional.layer_norm(given, (WIDTH,), weight, bias))
    assert cost(call).flops == (1 + 1 + 2 + 2 + 1 + 1) * COUNT
