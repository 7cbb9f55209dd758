"""The layers of compiled code: what torch.compile keeps while `keep_layers` is on.

A program of torch.compile runs in a process of its own, on the CPU; it is what `fastprof run` sets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fastprof.annotate.program.compiled import layers_of
from fastprof.readers.inductor import folder

PROGRAM = """
import torch
from fastprof.annotate.program.compiled import keep_layers

keep_layers()

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.fc(x)) * 2

net = torch.nn.Sequential(Block(), Block())
torch.compile(net)(torch.randn(2, 4)).sum().backward()
"""


def graph(**stacks: Any) -> Any:
    """A graph with the module stack of each node, as Dynamo writes it."""
    nodes = []
    for name, paths in stacks.items():
        stack = {str(i): (path, torch.nn.Module) for i, path in enumerate(paths)}
        nodes.append(SimpleNamespace(name=name, meta={"nn_module_stack": stack}))
    return SimpleNamespace(nodes=nodes)


@pytest.mark.parametrize(
    ("path", "layers"),
    [
        ("L['self'].blocks.0.fc", ["blocks.0", "fc"]),
        ("L['self']._modules['blocks']._modules['0']._modules['fc']", ["blocks.0", "fc"]),
        ("L['self']._orig_mod.head", ["head"]),
        ("L__self___blocks_0.fc", ["fc"]),
        ("blocks.0.fc", ["blocks.0", "fc"]),
    ],
)
def test_a_path_of_dynamo_is_the_modules_in_the_compiled_one(path: str, layers: list[str]) -> None:
    assert layers_of(graph(add=["L['self']", path])) == {"add": layers}


def test_the_compiled_module_itself_is_no_layer_of_its_nodes() -> None:
    assert layers_of(graph(add=["L['self']"], mul=[])) == {}


def test_backward_nodes_have_the_layers_of_their_forward_call() -> None:
    stack = {"1": ("L['self'].fc", torch.nn.Linear)}
    node = SimpleNamespace(name="mm", meta={"fwd_nn_module_stack": stack})
    assert layers_of(SimpleNamespace(nodes=[node])) == {"mm": ["fc"]}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="Inductor needs a C++ compiler")
def test_compiled_graphs_have_layers_and_nodes_forward_and_backward(tmp_path: Path) -> None:
    """Also those of the cache: the second process compiles nothing."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    for run in ("first", "cached"):
        environment = {
            **os.environ,
            "TORCH_TRACE": str(tmp_path / run),
            "INDUCTOR_PROVENANCE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
            "TORCHINDUCTOR_VEC_ISA_OK": "0",  # compiles sooner, without the header of vectors
        }
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout == b""
        graphs = folder.read(tmp_path / run).graphs
        assert len(graphs) == 2 and all(each.key for each in graphs)
        for each in graphs:
            assert all(kernel.nodes for kernel in each.kernels)
            layers = {each.nodes[name].layers for kernel in each.kernels for name in kernel.nodes}
            assert {("0",), ("0", "fc"), ("1",), ("1", "fc")} <= layers | {()}
