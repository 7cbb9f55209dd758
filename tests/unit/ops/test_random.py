"""Dropout and random numbers: FLOPs and bytes by hand."""

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.ops_calls import aten, fp16, fp32, int64, python, sizes, tensor
from unit.ops.ops_examples import Example, both, cost

F = "torch.nn.functional"
X = fp32(2, 3, 4, 5)
N, CHANNELS = 2 * 3 * 4 * 5, 2 * 3
MASK = tensor("bool", 2, 3, 4, 5)


DROPPED = (4 + 4 + 1) * N  # x read, y and mask written
DROPOUTS = [
    Example(
        python(F, "dropout", fp32(35, 20, 200), 0.2, True, False),
        700000,  # PyProf's, of its golden rows
        9 * 140000,
        "[35,20,200]fp32",
    ),
    Example(python(F, "dropout", X), 5 * N, DROPPED),
    Example(python(F, "dropout", X, training=False), 0, 0),
    Example(python(F, "dropout", X, 0.0), 0, 0),
    Example(python(F, "dropout", X, training=False), 0, 0, direction="bprop"),
    Example(python(F, "dropout", fp16(7), 0.5, True), 5 * 7, (2 + 2 + 1) * 7),
    *both("dropout dropout_ native_dropout", X, 0.5, True, flops=5 * N, moved=DROPPED),
    *both("dropout dropout_ native_dropout", X, 0.5, False, flops=0, moved=0),
    *both("native_dropout", X, 0.5, None, flops=5 * N, moved=DROPPED),
    *both("_fused_dropout", X, 0.5, None, flops=5 * N, moved=DROPPED),
    *both("dropout", X, 0.5, True, flops=2 * N, moved=DROPPED, direction="bprop"),
    *both("native_dropout_backward _masked_scale", X, MASK, 2.0, flops=2 * N, moved=DROPPED),
    Example(python("torch", "dropout", X, p=0.5, train=False), 0, 0),
    Example(sizes("native_dropout", (7,), (), ()), 5 * 7, None),
    # Channels: a number for each.
    *both(
        "feature_dropout feature_dropout_",
        *(X, 0.5, True),
        flops=N + 5 * CHANNELS,
        moved=4 * (2 * N + CHANNELS),
    ),
    *(
        Example(python(F, f"dropout{n}d", X), N + 5 * CHANNELS, 4 * (2 * N + CHANNELS))
        for n in (1, 2, 3)
    ),
    Example(python(F, "dropout2d", X), N, 4 * (2 * N + CHANNELS), direction="bprop"),
    Example(python(F, "dropout2d", X, training=False), 0, 0),
    *both("alpha_dropout alpha_dropout_", X, 0.5, True, flops=(2 + 8) * N, moved=4 * 3 * N),
    *both("alpha_dropout", X, 0.5, True, flops=N, moved=4 * 3 * N, direction="bprop"),
    *both(
        "feature_alpha_dropout feature_alpha_dropout_",
        *(X, 0.5, True),
        flops=2 * N + 8 * CHANNELS,
        moved=4 * (2 * N + CHANNELS),
    ),
    Example(python(F, "alpha_dropout", X), 0, 0),
    Example(sizes("feature_dropout", (2, 3, 4), (), ()), 24 + 5 * 6, None),
]

UNIFORM, NORMAL, INTEGER = 3 + 2, 3 + 60 + 4, 3 + 2
FILLS = {
    "uniform": UNIFORM,
    "normal": NORMAL,
    "log_normal": NORMAL + 20,
    "exponential": 3 + 20 + 1,
    "cauchy": 3 + 20 + 4,
    "geometric": 3 + 20 + 2,
    "random": INTEGER,
}
NUMBERS = [
    *(
        example
        for name, flops in FILLS.items()
        for example in [
            *both(f"{name}_", X, flops=flops * N, moved=4 * N),
            Example(sizes(f"{name}_", (2, 3), ()), flops * 6, None),
            Example(python("Tensor", f"{name}_", fp16(7), 0.5), flops * 7, 2 * 7),
        ]
    ),
    *(Example(aten(name, X), FILLS[name] * N, 4 * N) for name in FILLS if name != "normal"),
    Example(aten("normal_functional", X, 0.0, 1.0), NORMAL * N, 4 * N),
    *(
        Example(aten(f"_philox_{name}{end}", X, tensor("uint64", 2)), FILLS[name] * N, 4 * N)
        for name in ("uniform", "normal")
        for end in ("", "_")
    ),
    Example(python("torch", "rand", 2, 3), UNIFORM * 6, 4 * 6, "[2,3]fp32"),
    Example(python("torch", "rand", (2, 3), dtype="torch.float64"), UNIFORM * 6, 8 * 6),
    Example(python("torch", "randn", size=(2, 3)), NORMAL * 6, 4 * 6),
    Example(python("torch", "randn", ()), NORMAL, 4),
    Example(aten("rand", (2, 3), None, None, "cuda", None), UNIFORM * 6, 4 * 6),
    Example(aten("randn", (2, 3), 15, None, "cuda", None), NORMAL * 6, 2 * 6),
    Example(aten("rand", (2, 3), UNKNOWN), UNIFORM * 6, None),
    *both("rand_like", X, flops=UNIFORM * N, moved=4 * N),
    *both("randn_like", X, flops=NORMAL * N, moved=4 * N),
    Example(aten("rand_like", X, 5), UNIFORM * N, 2 * N),
    Example(python("torch", "randn_like", X, dtype="torch.float64"), NORMAL * N, 8 * N),
    Example(sizes("randn_like", (2, 3)), NORMAL * 6, None),
    Example(python("torch", "randint_like", int64(7), 10), INTEGER * 7, 8 * 7),
    Example(aten("randint_like", int64(7), 10, None, None, None), INTEGER * 7, 8 * 7),
    Example(aten("randint_like", int64(7), 0, 10, 3), INTEGER * 7, 4 * 7),
    Example(aten("randint_like", int64(7), 10, 3, None), INTEGER * 7, None),
    Example(python("torch", "randint", 10, (2, 3)), INTEGER * 6, 8 * 6),
    Example(python("torch", "randint", 0, 10, (2, 3), dtype="torch.int32"), INTEGER * 6, 4 * 6),
    Example(python("torch", "randint", high=10, size=(2, 3)), INTEGER * 6, 8 * 6),
    Example(aten("randint", 10, (2, 3), 4), INTEGER * 6, 8 * 6),
    Example(aten("randint", 0, 10, (2, 3), 3), INTEGER * 6, 4 * 6),
    Example(python("torch", "randperm", 100), 3 * 100, 8 * 100),  # PyProf's
    Example(python("torch", "randperm", n=100, dtype="torch.int32"), 3 * 100, 4 * 100),
    Example(aten("randperm", 100, 4, None, "cuda", None), 3 * 100, 8 * 100),
    Example(python("torch", "normal", 0.0, 1.0, (2, 3)), NORMAL * 6, 4 * 6),
    Example(python("torch", "normal", mean=X, std=2.0), NORMAL * N, 4 * 2 * N),
    Example(python("torch", "normal", X, fp32(5)), NORMAL * N, 4 * (2 * N + 5)),
    Example(aten("normal", 0.0, 1.0, (2, 3), None, 5, None), NORMAL * 6, 2 * 6),
    Example(aten("normal", X, 1.0, None), NORMAL * N, 4 * 2 * N),
    *both("bernoulli", X, flops=4 * N, moved=4 * 2 * N),
    *both("bernoulli", X, 0.5, flops=4 * N, moved=4 * N),
    *both("bernoulli_", X, flops=4 * N, moved=4 * N),
    *both("bernoulli_", X, fp32(5), flops=4 * N, moved=4 * (N + 5)),
    Example(sizes("bernoulli_", (2, 3), ()), 4 * 6, None),
    *both("multinomial", fp32(7, 6), 2, True, flops=None, moved=4 * 42 + 8 * 14),
    *both("poisson _standard_gamma _sample_dirichlet", X, flops=None, moved=4 * 2 * N),
    *both("binomial", fp32(7, 1), fp32(6), flops=None, moved=4 * (7 + 6 + 42)),
]

EXAMPLES = [*DROPOUTS, *NUMBERS]


def test_a_dropout_that_may_be_training_is_taken_for_it_and_is_not_exact() -> None:
    unsure, sure = aten("native_dropout", X, 0.5, UNKNOWN), aten("native_dropout", X, 0.5, True)
    costs = [work(call, "fprop") for call in (unsure, sure)]
    assert costs[0] is not None and costs[1] is not None
    assert (costs[0].cost.exact, costs[1].cost.exact) == (False, True)
    assert costs[0].cost.bytes == costs[1].cost.bytes


def test_both_doors_of_a_dropout_give_the_same() -> None:
    for training in (True, False):
        for direction in ("fprop", "bprop"):
            called = work(python(F, "dropout", X, 0.5, training), direction)
            assert called == work(aten("native_dropout", X, 0.5, training), direction)


def test_random_numbers_have_no_backward_pass() -> None:
    assert work(python("Tensor", "normal_", X), "bprop") is None
    assert work(python("torch", "rand", 2, 3), "bprop") is None


def test_nothing_filled_is_nothing_moved() -> None:
    done = cost(python("torch", "rand", 0, 3))
    assert (done.flops, done.bytes) == (0, 0)


MALFORMED = [
    python(F, "dropout", 1.0),
    python(F, "dropout", X, "half"),
    python(F, "dropout2d", fp32(5)),
    python(F, "feature_alpha_dropout", fp32(5), 0.5, True),
    aten("native_dropout_backward", X, fp32(3), 2.0),
    python("torch", "rand", -1),
    python("torch", "rand"),
    python("torch", "randint", 10),
    python("torch", "randperm", -1),
    python("torch", "randperm", 2.5),
    python("torch", "normal", 0.0, 1.0),
    python("torch", "multinomial", fp32(2, 3, 4), 2),
    python("torch", "multinomial", fp32(7, 6), -1),
    python("torch", "normal", X, fp32(3)),
    sizes("rand", (), (), ()),
    sizes("normal", (), (), ()),
    sizes("multinomial", (7, 6), (), ()),
]
