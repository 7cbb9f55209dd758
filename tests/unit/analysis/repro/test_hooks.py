"""Functions in scripts: those that `fastprof.op` names for operators, and torch's own."""

from pathlib import Path

import pytest

import fastprof
from fastprof import OpError, cli
from fastprof.analysis.repro.inputs import NotRepeatableError, source_of
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from unit.analysis.repro.repeated_calls import Calls, repeated

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

LIBRARY = """
import torch

# As a library does: the operator exists once its module is imported.
torch.library.define("fastprof_hooks::double", "(Tensor x, int n) -> Tensor")
torch.library.impl("fastprof_hooks::double", "CPU", lambda x, n: 2 * x.repeat(n))

def gathered(x, lengths, scale):
    assert lengths == [3, 5] and scale is ... or scale == 0.5
    return x.new_empty(sum(lengths))

def lengths(x, lengths, scale):
    assert lengths is ... and scale == 0.5
    return x, [3, 5], scale
"""
COSTS = """
import fastprof

@fastprof.op(None, aten=("fastprof_hooks::double",), call="hooks_library")
def double(x: fastprof.Tensor, n: int):
    return fastprof.Cost(8, 8)

@fastprof.op("hooks.markers", "gathered", aten=("fastprof_hooks::gathered",),
             call="hooks_library.gathered", make="hooks_library.lengths")
def gathered(x: fastprof.Tensor, lengths: object, scale: float):
    return fastprof.Cost(8, 8)
"""
FLOATS = Tensor((4,), "float32")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a library that the script finds, and the file of its costs."""
    (tmp_path / "hooks_library.py").write_text(LIBRARY)
    costs = tmp_path / "hooks_costs.py"
    costs.write_text(COSTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(fastprof.ops.registry, "_entries", {**fastprof.ops.registry._entries})
    return costs


def test_the_script_imports_what_a_hook_names(library, tmp_path):
    calls = Calls().call("fastprof_hooks::double", [[4], []], ["float", "Scalar"], 90,
                         concrete=["", "3"])  # fmt: skip
    calls.call("fastprof_hooks::gathered", [[4], [], []], ["float", "", "Scalar"], 80,
               concrete=["", "", "0.5"])  # fmt: skip
    trace, out = tmp_path / "trace.json", tmp_path / "out.py"
    calls.write(trace)
    assert cli.main(["repro", str(trace), "--top", "2", "-o", str(out), "--ops", str(library)]) == 0
    printed = repeated(out.read_text(), tmp_path)
    assert "fastprof_hooks::double(float32[4], 3)" in printed
    assert "results   (12,)" in printed
    assert "results   (8,)" in printed


def test_a_hook_serves_markers_of_python_functions_too(library):
    marker = Call("hooks.markers", "gathered", (Arg("", FLOATS), Arg("scale", 0.5)))
    with pytest.raises(NotRepeatableError, match=r"a function of hooks.markers; fastprof.op"):
        source_of(marker)
    fastprof.ops.user.load_file(library)
    source = source_of(marker)
    assert source.function == "hooks_library.gathered"
    assert source.make == "hooks_library.lengths"
    assert (source.args, source.named) == (["T((4,), 'float32')"], {"scale": "0.5"})


def test_without_a_maker_what_the_trace_lacks_is_refused():
    lacking = Call("aten", "add", (Arg("", FLOATS), Arg("", UNKNOWN)))
    with pytest.raises(NotRepeatableError, match="not recorded"):
        source_of(lacking)


@pytest.mark.parametrize("path", ["", "my module", "mylib.ops:rope", "mylib."])
def test_a_hook_is_an_import_path(path):
    with pytest.raises(OpError, match=r"call=.*: expected an import path, such as my_module\.rope"):

        @fastprof.op(None, aten=("fastprof_hooks::other",), call=path)
        def other(x: fastprof.Tensor):
            return fastprof.Cost(1, 1)


@pytest.mark.parametrize(
    ("call", "function", "arguments"),
    [
        (Call("Tensor", "__add__", (Arg("", FLOATS), Arg("", 2))), "torch.Tensor.__add__",
         ["T((4,), 'float32')", "2"]),
        (Call("torch", "cat", (Arg("", FLOATS), Arg("", FLOATS), Arg("dim", 0))), "torch.cat",
         ["[T((4,), 'float32'), T((4,), 'float32')]"]),
        (Call("torch.nn.functional", "relu", (Arg("input", FLOATS),)), "torch.nn.functional.relu",
         []),
        (Call("aten", "relu", (Arg("", FLOATS),)), "", ["T((4,), 'float32')"]),
    ],
)  # fmt: skip
def test_functions_of_torch_are_called_as_python_calls_them(call, function, arguments):
    source = source_of(call)
    assert (source.function, source.args) == (function, arguments)
