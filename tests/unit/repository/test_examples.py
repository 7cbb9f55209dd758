"""The examples, run as a user runs them: their output and traces."""

import functools
import os
import sys
from pathlib import Path

import pytest

from fastprof.cli import main
from fastprof.model.call import Tensor
from fastprof.model.markers import Kind, op_name
from support import processes, torch_server
from support.nvtx_read_back import read_back

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "settings")
# Examples that also run with a consumer of NVTX; the others do so only with --run-slow.
SHOWN_TO_NVTX = ("compile", "custom_function", "lenet")
# The test of whole stacks needs this. The others run in forks of a process that has imported torch.
IN_A_NEW_PROCESS = ("simple",)
# Examples run on any machine; the tests run them on the CPU.
WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


class Ran:
    """The output of an example, and the ranges of its trace by start."""

    def __init__(self, name, directory):
        self.trace = directory / f"{name}.json.gz"
        words = [EXAMPLES / f"{name}.py", "--backend", "torch"]
        result = processes.ran(
            [sys.executable, *words] if name in IN_A_NEW_PROCESS else torch_server.command(*words),
            cwd=directory,
            env={**os.environ, **WITHOUT_GPU},
        )
        self.status, self.stdout = result.returncode, result.stdout
        # Some builds of torch print these whenever its profiler starts and stops.
        lines = result.stderr.splitlines()
        self.stderr = [line for line in lines if not line.startswith("USDT:")]

    @functools.cached_property
    def ranges(self):
        return read_back(self.trace)

    @property
    def layers(self):
        return [range_.meaning.name for range_ in self.ranges if range_.meaning.kind == Kind.LAYER]

    def calls(self, op=None, layer=None):
        """The calls in argument markers, optionally of one operator or in one layer."""
        return [
            range_.meaning.call
            for range_ in self.ranges
            if range_.meaning.kind == Kind.ARGUMENT
            and op in (None, range_.meaning.call.op)
            and layer in (None, *layers_around(range_))
        ]


def layers_around(range_):
    return [each.meaning.name for each in range_.chain() if each.meaning.kind == Kind.LAYER]


def shapes(call):
    return [arg.value.shape for arg in call.args if isinstance(arg.value, Tensor)]


def types(call):
    return [arg.value.dtype for arg in call.args if isinstance(arg.value, Tensor)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The run of an example, cached."""
    return functools.cache(lambda name: Ran(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_and_says_how_to_look_at_its_trace(ran, name, capsys):
    example = ran(name)
    assert (example.status, example.stderr) == (0, [])
    assert f"fastprof info {name}.json.gz" in example.stdout
    assert "no kernels" in example.stdout
    assert main(["info", str(example.trace)]) == 0
    assert "annotations" in capsys.readouterr().out
    assert main(["prof", "-w", "150", str(example.trace)]) == 0
    assert "Found 0 kernels" in capsys.readouterr().err


def test_every_example_stands_in_the_table_of_the_readme():
    text = (EXAMPLES / "README.md").read_text()
    assert [name for name in NAMES if f"[{name}.py]({name}.py)" not in text] == []
    assert len(NAMES) == 8


def test_simple_operators_have_their_arguments_and_lines(ran):
    example = ran("simple")
    (convolution,) = example.calls("conv2d")
    assert shapes(convolution) == [(4, 3, 32, 32), (8, 3, 5, 5)]
    assert types(convolution) == ["float32", "float32"]
    assert [(arg.name, arg.value) for arg in convolution.args[2:]] == [("padding", 2)]
    (product,) = example.calls("__matmul__")
    assert shapes(product) == [(4, 8), (8, 10)]
    lines = (EXAMPLES / "simple.py").read_text().splitlines()
    frames = [
        range_.parent.meaning.frames
        for range_ in example.ranges
        if range_.meaning.call in (convolution, product) and range_.parent
    ]
    said = [lines[int(frame.rpartition(":")[2]) - 1].strip() for (frame,) in frames]
    assert said == [
        "features = F.conv2d(images, filters, padding=2).relu()",
        "scores = pooled @ weight.T",
    ]


def test_simple_operators_run_backward(ran):
    names = [
        op_name(range_.meaning) for range_ in ran("simple").ranges if range_.meaning.autograd_node
    ]
    order = [name for name in names if name in ("Convolution", "Mm", "Softmax")]
    assert [*dict.fromkeys(order)] == ["Softmax", "Mm", "Convolution"]


def test_lenet_records_two_of_its_steps(ran):
    example = ran("lenet")
    convolutions = [(64, 1, 28, 28), (64, 6, 14, 14)]
    assert [shapes(call)[0] for call in example.calls("conv2d")] == convolutions * 2
    assert example.layers == ["conv1", "conv2", "fc1", "fc2", "fc3"] * 2
    assert len(example.calls("backward")) == len(example.calls("cross_entropy")) == 2
    assert [call.mod for call in example.calls("step")] == ["SGD", "SGD"]
    for part in ("forward", "backward", "optimizer"):
        assert part in example.stdout


def test_resnet_has_layers_of_modules_and_of_code(ran):
    example = ran("resnet_layers")
    additions = [
        layers_around(range_)
        for range_ in example.ranges
        if range_.meaning.kind == Kind.ARGUMENT and range_.meaning.call.op == "__add__"
    ]
    blocks = [("stage1", 0), ("stage1", 1), ("stage2", 0), ("stage2", 1)]
    assert additions == [["resnet", stage, f"{stage}.{i}", "residual"] for stage, i in blocks]
    assert len(example.calls("conv2d", "stage1.0.conv1")) == 1
    assert len(example.calls("conv2d", "residual")) == 1  # the shortcut with a convolution
    assert len(example.calls("linear", "head")) == 1


def test_a_function_of_ones_own_has_ranges_forward_and_backward(ran):
    example = ran("custom_function")
    calls = [call for call in example.calls() if call.mod == "SquaredReLU"]
    assert [(call.op, shapes(call)) for call in calls] == [
        ("forward", [(16, 256)]),
        ("backward", [(16, 256)]),
    ]
    (backward,) = (r for r in example.ranges if r.meaning.call is calls[1])
    around = [op_name(each.meaning) for each in backward.chain() if each.meaning.autograd_node]
    assert around[-1] == "SquaredReLU"


def test_a_module_of_ones_own_is_a_call_with_its_settings(ran):
    example = ran("custom_module")
    (call,) = (call for call in example.calls() if call.mod == "ScaleAndShift")
    assert (call.op, shapes(call), types(call)) == ("forward", [(16, 256)], ["float32"])
    modules = [range_.meaning for range_ in example.ranges if range_.meaning.kind == Kind.MODULE]
    assert [module.module_repr for module in modules] == ["size=256"]


def test_scripted_and_traced_code_has_ranges_of_torch_only(ran):
    example = ran("jit")
    assert example.layers == ["scripted", "traced", "head"]
    assert example.calls(layer="scripted") == example.calls(layer="traced") == []
    operators = {
        layers_around(range_)[-1]: op_name(range_.meaning)
        for range_ in example.ranges
        if op_name(range_.meaning) in ("relu", "tanh") and layers_around(range_)
    }
    assert operators == {"scripted": "relu", "traced": "tanh"}
    (linear,) = example.calls("linear", "head")
    assert types(linear) == ["bfloat16", "float32", "float32"]  # before autocast, which is inside


def test_the_compiled_part_is_one_layer_with_the_calls_that_the_compiler_made_of_it(ran):
    example = ran("compile")
    assert example.layers == ["embedding", "block", "head"]
    assert len(example.calls("embedding", "embedding")) >= 1
    assert len(example.calls("linear", "head")) == len(example.calls("linear")) == 1
    # What torch's own runtime calls round the compiled code, and what that calls by torch.ops; no
    # call of the block itself.
    made = [call for call in example.calls(layer="block") if call.mod == "torch.ops.aten"]
    assert {"native_layer_norm", "gelu", "addmm"} <= {call.op for call in made}
    others = [call for call in example.calls(layer="block") if call not in made]
    assert {call.op for call in others} <= {"detach"}
    inside = {op_name(r.meaning) for r in example.ranges if "block" in layers_around(r)}
    assert {"native_layer_norm", "gelu", "addmm"} <= inside


def test_attention_is_one_operator_in_bfloat16(ran):
    example = ran("transformer")
    attentions = example.calls("scaled_dot_product_attention")
    assert [shapes(call) for call in attentions] == [[(2, 4, 48, 16)] * 3] * 2
    assert {name for call in attentions for name in types(call)} == {"bfloat16"}
    assert attentions == [
        *example.calls("scaled_dot_product_attention", "encoder.0.attention"),
        *example.calls("scaled_dot_product_attention", "encoder.1.attention"),
    ]
    assert len(example.calls("linear", "encoder.1.mlp")) == 2
    assert [call.mod for call in example.calls("step")] == ["AdamW"]


@pytest.mark.parametrize(
    "name",
    [
        name if name in SHOWN_TO_NVTX else pytest.param(name, marks=pytest.mark.slow)
        for name in NAMES
    ],
)
def test_an_example_tells_nvtx_what_it_tells_torch_profiler(ran, record_nvtx, tmp_path, name):
    recording = record_nvtx(
        EXAMPLES / f"{name}.py",
        *("--backend=torch", f"--out={tmp_path / name}.json"),
        env=WITHOUT_GPU,
        with_torch=True,
    )
    assert (recording.open_ranges, recording.stray) == ([], 0)
    said = annotations(read_back(recording.path))
    expected = annotations(ran(name).ranges)
    assert expected
    # NVTX sees the entire run, torch.profiler the captured steps.
    starts = range(len(said) - len(expected) + 1)
    assert any(said[start : start + len(expected)] == expected for start in starts)


def annotations(ranges):
    """The texts of layers and calls."""
    return [
        range_.meaning.name if range_.meaning.kind == Kind.LAYER else range_.meaning.call
        for range_ in ranges
        if range_.meaning.kind in (Kind.LAYER, Kind.ARGUMENT)
    ]
