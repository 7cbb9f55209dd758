"""fastprof and the plain Python of bench/baseline give the same rows for generated exports."""

import itertools
from collections import Counter

import pytest
from bench import baseline
from bench.generate import generate
from hypothesis import assume, given
from hypothesis import strategies as st

import fastprof
from support import dict_lines
from support.exports import PID, Export
from support.hypothesis_profiles import examples
from support.real_data import real


def tensor(*shape, dtype="float16"):
    return {"name": "", "type": "tensor", "shape": shape, "dtype": dtype}


def marker(mod, op, *args):
    return str({"mod": mod, "op": op, "args": list(args)})


# Range names of every form; the numbers come when one is drawn.
MARKERS = [
    marker("torch.nn.functional", "linear", tensor(8, 16), tensor(4, 16), tensor(4)),
    marker("torch", "matmul", tensor(8, 16), tensor(16, 4)),
    # The second call that autocast makes, and its casts.
    marker(
        "torch.nn.functional", "linear", *(tensor(*s, dtype="float32") for s in ((8, 16), (4, 16)))
    ),
    marker("torch.nn.functional", "gelu", tensor(8, 16, dtype="float32")),
    marker("torch.Tensor", "half", tensor(8, 16, dtype="float32")),
    marker("torch.nn.functional", "gelu", tensor(8, 16, dtype="bfloat16")),
    marker("mine", "no_such_op", tensor(8, 16), {"name": "x", "type": "float", "value": "inf"}),
]
OTHERS = [
    "layer:one",
    "layer:a:b",
    "step 3",
    "forward_backward",
    "Optimizer.step#AdamW.step",
    "{'mod': 'LSTMCell', 'strRepr': '512, 512'}",
    "{'traceMarker': ['train.py:310', '/x/torch/nn/modules/linear.py:7', \"it's.py:2\"]}",
    "{'traceMarker': ['model.py:3'], 'funcStack': '/<module>/main'}",
]
FORWARD = [
    "aten::linear",
    "aten::mm",
    "mm",
    "native_layer_norm",
    "layer_norm",
    "a, seq = b",
    "CheckpointFunction",
    "ext::lookup_rows",
    "LookupFunction",
]
BACKWARD = [
    "autograd::engine::evaluate_function: AddmmBackward0",
    "AddmmBackward0",
    "MulBackward",
    "aten::threshold_backward",
    "CheckpointFunctionBackward",
    "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    "torch::autograd::CppNode<ext::LookupRowsOp>",
    "autograd::engine::evaluate_function: LookupFunctionBackward",
    "LookupFunctionBackward",
    "aten::mm",
    "aten::copy_",
    "aten::sum",
]
KERNELS = [
    "void at::native::(anonymous namespace)::vectorized_elementwise_kernel<4, float>(int)",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nt",
    "nvjet_tst_192x192_64x4_2x1_v_bz_NNT",
    "void at::native::reduce_kernel<512, 1>(float)",
    "my kernel",
    "cutlass_80_tensorop_gemm",
]
NUMBER = st.sampled_from(["", ", seq = 0", ", seq = 1", ", seq = 2", ", seq = 2, op_id = 9"])
SIZES = st.sampled_from(["", "", ", sizes = [[8, 16], [16, 4]]", ", sizes = [[], [3]"])


def torch_names(names):
    return st.builds(lambda *parts: "".join(parts), st.sampled_from(names), NUMBER, SIZES)


TEXT = st.sampled_from(MARKERS) | st.sampled_from(OTHERS) | torch_names(FORWARD + BACKWARD)
AROUND_FORWARD = st.sampled_from(MARKERS + OTHERS) | torch_names(FORWARD)
THREAD = st.sampled_from([(PID, 1), (PID, 2), (PID + 1, 1)])
TIME = st.integers(0, 40).map(lambda time: 25 * time)
RANGE = st.tuples(TIME, TIME | st.none(), TEXT, THREAD, st.sampled_from(["push", "start", "text"]))
# (time and thread of the launch, None if before the capture; name; duration).
WORK = st.tuples(TIME, THREAD | st.none(), st.sampled_from(KERNELS), st.integers(-1, 9))
# The ranges around a forward and a backward call, outermost first, and their kernels.
NAMES = st.lists(st.sampled_from(KERNELS), max_size=3)
CALL = st.tuples(
    st.lists(AROUND_FORWARD, min_size=1, max_size=4), NAMES,
    st.lists(torch_names(BACKWARD), max_size=4), NAMES, THREAD,
)  # fmt: skip


class Capture(Export):
    """An export that numbers correlation ids, with two kernels per id."""

    def __init__(self):
        super().__init__()
        self.n_kernels = 0

    def work(self, at, thread, name, length=5):
        pid, tid = thread or (PID, 1)
        corr = self.n_kernels // 2  # so that processes share them
        self.n_kernels += 1
        if thread is not None:
            self.launch(at, at + 1, corr, tid, pid=pid)
        self.kernel(at + 5, at + 5 + length, corr, name=name, pid=pid)

    def nest(self, start, texts, names, thread):
        """Nested ranges, with kernels launched in the innermost."""
        pid, tid = thread
        for inset, text in enumerate(texts):
            self.push_pop(start + inset, start + 90 - inset, text, tid, pid=pid)
        for i, name in enumerate(names):
            self.work(start + 20 + 10 * i, thread, name, 5 + i)


@st.composite
def captures(draw):
    export = Capture()
    for i, (forward, names, backward, backward_names, thread) in enumerate(
        draw(st.lists(CALL, max_size=4))
    ):
        export.nest(100 * i, forward, names, (PID, 1))
        export.nest(900 - 100 * i, backward, backward_names, thread)
    for start, end, text, (pid, tid), form in draw(st.lists(RANGE, max_size=6)):
        if form == "start":
            export.start_end(start, end, text, tid, pid=pid)
        else:
            export.push_pop(start, end, text, tid, pid=pid, registered=form == "text")
    for at, thread, name, length in draw(st.lists(WORK, max_size=6)):
        export.work(at, thread, name, length)
    return export


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Names of files that do not exist."""
    folder = tmp_path_factory.mktemp("baseline")
    return (folder / f"{i}.sqlite" for i in itertools.count())


def check_rows(path, without=()):
    """Every column that the baseline computes, without some, is equal in every row."""
    capture, profile = baseline.open_export(path), fastprof.open(path, copies=False)
    expected = list(baseline.rows(capture))
    got = [{key: row[key] for key in expected[0]} for row in profile.rows()] if expected else []
    assert len(got) == len(expected) == len(profile)
    wrong = Counter(
        key
        for one, other in zip(expected, got, strict=True)
        for key in one
        if one[key] != other[key] and key not in without and not is_of_caller(key, other)
    )
    assert not wrong, next(pair for pair in zip(expected, got, strict=True) if pair[0] != pair[1])
    return expected


def is_of_caller(key, row):
    """Whether a value may be of the thread that called backward, whose ranges the baseline gives to
    work without ranges only; tests/unit/profile/callpath/test_autograd_threads.py checks them."""
    return key == "ranges" and row["dir"] == "bprop"


def check_dict_lines(path):
    """The dict lines are the same bytes."""
    profile = fastprof.open(path, copies=False)
    text = dict_lines.written(profile).read() if len(profile) else b""
    expected = baseline.dict_lines(baseline.open_export(path))
    assert text.decode().splitlines(keepends=True) == list(expected)


@examples(150)
@given(captures(), st.none() | st.integers(0, 9))
def test_small_captures_of_any_ranges_have_the_same_rows(paths, export, shuffle_seed):
    path = export.write(next(paths), shuffle_seed=shuffle_seed)
    # Which of several threads called autograd's is no question for the baseline.
    assume(not any(baseline.open_export(path).by_engine))
    # Calls inside of calls of other operators have a cost of their own, which the baseline lacks;
    # tests/property/test_calls.py has it.
    check_rows(path, without=("op", "params", "flops", "bytes"))
    check_dict_lines(path)
    path.unlink()


def test_ranges_that_go_on_when_one_below_them_ends_keep_their_order(paths):
    export = Capture()
    for start, end, text in (
        (0, 300, "layer:zero"),
        (10, 100, "layer:one"),
        (20, 300, "layer:two"),
        (30, 250, "aten::mm, seq = 1"),
        (40, 300, "layer:three"),
    ):
        export.start_end(start, end, text, tid=1)
    export.work(150, (PID, 1), KERNELS[0])
    (row,) = check_rows(export.write(next(paths)))
    assert row["layer"] == ("zero", "two", "three")


def test_kernels_of_a_backward_call_share_its_gradients_alike(paths):
    export = Capture()
    for i, names in enumerate(itertools.product(KERNELS, repeat=2)):
        forward = [MARKERS[0], f"aten::linear, seq = {i}"]
        export.nest(200 * i, forward, [KERNELS[1]], (PID, 1))
        export.nest(200 * i + 100, [f"AddmmBackward0, seq = {i}"], names, (PID, 2))
    rows = check_rows(export.write(next(paths)))
    assert {row["op"] for row in rows} == {"linear", "bias"}


@pytest.mark.parametrize(("seed", "n_processes"), [(1, 1), (5, 2)])
def test_made_up_runs_have_the_same_rows(tmp_path, seed, n_processes):
    generate(tmp_path / "run.sqlite", 1500, seed, n_processes)
    rows = check_rows(tmp_path / "run.sqlite")
    assert {row["dir"] for row in rows} == {"fprop", "bprop", None}
    assert sum(row["flops"] is not None for row in rows) > len(rows) / 2
    check_dict_lines(tmp_path / "run.sqlite")


@pytest.mark.parametrize(
    "name",
    [
        "cudagraph_a100_nsys2024.sqlite",
        "emit_nvtx_2gpu_nsys2026.sqlite",
        "no_cuda_tables_nsys2025.sqlite",
        "no_nvtx_rtx3090_nsys2025.sqlite",
        "no_nvtx_rtx6000_nsys2021.sqlite",
        "nvtx_only_startend_nsys2022.sqlite",
        "ranges_rtx3070_nsys2025.sqlite",
    ],
)
def test_real_exports_have_the_same_rows(name):
    check_rows(real(f"nsys/{name}"))
    check_dict_lines(real(f"nsys/{name}"))
