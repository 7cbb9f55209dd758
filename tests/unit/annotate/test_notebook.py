"""`%%fastprof` in IPython: the cell is recorded, and its Profile returned."""

import gzip
import json
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")
interactiveshell = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython is not installed: pip install ipython"
)

import fastprof
from fastprof.errors import CaptureError


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell replaces it
    made = interactiveshell.InteractiveShell()
    made.history_manager.enabled = False
    made.run_line_magic("load_ext", "fastprof")
    yield made
    fastprof.uninit()
    made.reset()


def names_in(path):
    with gzip.open(path) as file:
        return {str(event.get("name")) for event in json.load(file)["traceEvents"]}


def test_a_cell_is_recorded_with_the_modules_that_it_makes(shell, tmp_path):
    shell.run_cell("import torch\nold = torch.nn.Sequential(torch.nn.Linear(8, 8))")
    profile = shell.run_cell_magic(
        "fastprof",
        "mine",
        "class New(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.made = torch.nn.Linear(8, 4)\n"
        "    def forward(self, x):\n"
        "        return self.made(x)\n"
        "new = New()\n"
        "y = new(old(torch.randn(2, 8)))",
    )
    assert isinstance(profile, fastprof.Profile)
    assert shell.user_ns["y"].shape == (2, 4)  # the cell runs in the notebook's namespace
    (trace,) = tmp_path.glob("fastprof-runs/mine-*/trace.json.gz")
    names = names_in(trace)
    assert {"aten::linear", "layer:made", "layer:0"} <= names
    hooks = [
        forward_hook
        for module in shell.user_ns["new"].modules()
        for forward_hook in module._forward_hooks
    ]
    assert not hooks


def test_a_failing_cell_leaves_no_run(shell, tmp_path, capsys):
    assert shell.run_cell_magic("fastprof", "", "1 / 0") is None
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert not list(tmp_path.glob("fastprof-runs/*"))


def test_a_running_profiler_is_an_error(shell):
    with torch.profiler.profile(), pytest.raises(CaptureError, match="already active"):
        shell.run_cell_magic("fastprof", "", "1")
