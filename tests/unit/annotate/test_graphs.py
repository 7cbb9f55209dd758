"""Layers of CUDA graphs: torch's own annotations over a stand-in for the CUDA runtime.

The stand-in captures the operators of the CPU as nodes of a graph, in a chain, as one stream does.
"""

import contextlib
import gc
import weakref
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

annotations = pytest.importorskip("torch.cuda._graph_annotations")

from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import fastprof
from fastprof.annotate import graphs
from fastprof.annotate.patches import Patches
from fastprof.annotate.program.layers import annotate_graphs
from fastprof.model.markers.annotations import BACKWARD, FORWARD, pairs_of, read_annotation

CAPTURE, EXECUTABLE = 7, 8  # ids of graphs


class Runtime:
    """Functions of cuda.bindings.runtime that torch calls; `nodes` are the captured operators."""

    def __init__(self):
        self.nodes = None
        self.cudaStreamCaptureStatus = SimpleNamespace(cudaStreamCaptureStatusActive="active")
        self.cudaGraphNodeType = SimpleNamespace(
            cudaGraphNodeTypeKernel="kernel", cudaGraphNodeTypeMemcpy="copy"
        )

    def cudaStream_t(self, init_value):
        return init_value

    cudaGraphExec_t = cudaStream_t

    def cudaStreamGetCaptureInfo(self, stream):
        last = [len(self.nodes)] if self.nodes else []
        status = "none" if self.nodes is None else "active"
        return 0, status, 1, "graph", last, None, len(last)

    def cudaGraphGetRootNodes(self, graph, pNumRootNodes=None):
        return 0, [1][: len(self.nodes)], min(len(self.nodes), 1)

    def cudaGraphNodeGetDependentNodes(self, node, pNumDependentNodes=None):
        following = [node + 1] if node < len(self.nodes) else []
        return 0, following, None, len(following)

    def cudaGraphNodeGetType(self, node):
        return 0, "kernel"

    def cudaGraphNodeGetToolsId(self, node):
        return 0, CAPTURE << 32 | node

    def cudaGraphExecGetId(self, handle):
        return 0, EXECUTABLE


class Operators(TorchDispatchMode):
    """Makes nodes of operators."""

    def __init__(self, runtime):
        super().__init__()
        self._nodes = runtime.nodes

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self._nodes.append(function.overloadpacket.__name__)
        return function(*arguments, **(named or {}))


@pytest.fixture
def runtime(monkeypatch):
    own = Runtime()
    monkeypatch.setattr(annotations, "_cuda_runtime", own)
    monkeypatch.setattr(annotations, "_HAS_CUDA_BINDINGS", True)
    monkeypatch.setattr(annotations, "_tools_id_available", True)
    monkeypatch.setattr(annotations, "_check_cuda_bindings", lambda result: unpacked(result[1:]))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=3))
    monkeypatch.setattr(graphs, "is_available", lambda: True)
    monkeypatch.setattr(graphs, "_names", [])
    monkeypatch.setattr(graphs, "_patches", Patches())

    def begin(capture):
        own.nodes = []

    monkeypatch.setattr(torch.cuda.graph, "__enter__", begin)
    monkeypatch.setattr(torch.cuda.graph, "__exit__", lambda *_: None)
    annotations.clear_kernel_annotations()
    yield own
    annotations.clear_kernel_annotations()
    graphs._patches.revert()


def unpacked(values):
    return values[0] if len(values) == 1 else values


@contextlib.contextmanager
def capturing(runtime):
    """Capture the operators of a block."""
    capture = object.__new__(torch.cuda.graph)
    capture.cuda_graph = SimpleNamespace(raw_cuda_graph_exec=lambda: 1)
    with capture, Operators(runtime):
        yield


def marked(runtime):
    """Operator, module and direction of each node, as a file of annotations gives them."""
    own = annotations.get_kernel_annotations()
    assert all(number >> 32 == EXECUTABLE for number in own)
    notes = [
        read_annotation(pairs_of(own.get(EXECUTABLE << 32 | 1 + i, [])))
        for i in range(len(runtime.nodes))
    ]
    return [
        (name, *((None, "") if note is None else (dict(note.fields)["module_fqn"], note.direction)))
        for name, note in zip(runtime.nodes, notes, strict=True)
    ]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.fc(x)) * 2


def test_nodes_have_the_innermost_module_and_the_direction(runtime):
    model = nn.Sequential(Block(), Block())
    layers = fastprof.annotate_layers(model)
    x = torch.ones(2, 4)
    with capturing(runtime):
        y = model(x + 1)
        y.sum().backward()
    nodes = marked(runtime)
    assert nodes[0] == ("add", None, "")
    forward = [node for node in nodes if node[2] == FORWARD]
    assert [(name, module) for name, module, _ in forward if name in ("addmm", "tanh", "mul")] == [
        ("addmm", "0.fc"), ("tanh", "0"), ("mul", "0"),
        ("addmm", "1.fc"), ("tanh", "1"), ("mul", "1"),
    ]  # fmt: skip
    backward = [node for node in nodes if node[2] == BACKWARD]
    assert [(name, module) for name, module, _ in backward if name in ("mm", "tanh_backward")] == [
        ("tanh_backward", "1"), ("mm", "1.fc"), ("mm", "1.fc"),
        ("tanh_backward", "0"), ("mm", "0.fc"),
    ]  # fmt: skip
    assert ("sum", None, "") in nodes
    layers.remove()
    assert not graphs._names


def test_branches_with_the_same_input_keep_their_nodes_apart(runtime):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            x = self.before(x)
            return torch.sin(self.q(x)) * torch.cos(self.k(x))

    model = Attention()
    with fastprof.annotate_layers(model, "attention"), capturing(runtime):
        model(torch.ones(2, 4)).sum().backward()
    nodes = [each for each in marked(runtime) if each[2] == BACKWARD]
    products = [module for name, module, _ in nodes if name == "mm"]
    assert products == ["attention.k"] * 2 + ["attention.q"] * 2 + ["attention.before"]


def test_results_are_equal_and_hooks_end_with_the_capture(runtime):
    model = nn.Sequential(Block(), Block())
    x = torch.ones(2, 4, requires_grad=True)
    expected = torch.autograd.grad(model(x).sum(), x)[0]
    with fastprof.annotate_layers(model):
        n_hooks = len(model[0]._forward_hooks)
        with capturing(runtime):
            assert len(model[0]._forward_hooks) == n_hooks + 1
            actual = torch.autograd.grad(model(x).sum(), x)[0]
        assert len(model[0]._forward_hooks) == n_hooks
        assert not annotations._annotations_enabled
    assert torch.equal(actual, expected)


def test_a_failing_module_closes_its_scope(runtime):
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("in forward")

    model = nn.ModuleDict({"bad": Fails(), "good": nn.ReLU()})
    with fastprof.annotate_layers(model), capturing(runtime):
        with pytest.raises(ValueError, match="in forward"):
            model["bad"](torch.ones(1))
        model["good"](torch.ones(1) + 1)
    assert marked(runtime)[-1] == ("relu", "good", FORWARD)
    assert [module for name, module, _ in marked(runtime) if name == "add"] == [None]


def test_a_failure_of_torch_is_not_seen(runtime, monkeypatch):
    def mark_kernels(_):
        raise RuntimeError("no such function")

    monkeypatch.setattr(annotations, "mark_kernels", mark_kernels)
    model = Block()
    with fastprof.annotate_layers(model, "net"), capturing(runtime):
        model(torch.ones(2, 4)).sum().backward()
    assert "addmm" in runtime.nodes
    assert not annotations.get_kernel_annotations()


def test_annotations_of_the_program_stay(runtime):
    model = nn.ReLU()
    with fastprof.annotate_layers(model, "act"):
        annotations.enable_annotations()
        try:
            with capturing(runtime), annotations.mark_kernels({"name": "own"}):
                torch.ones(1).relu()
            assert annotations._annotations_enabled
        finally:
            annotations.disable_annotations()
    assert list(annotations.get_kernel_annotations().values())[-1] == [{"name": "own"}]


def test_models_are_not_kept_alive(runtime):
    model = Block()
    layers = fastprof.annotate_layers(model)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
    assert not graphs._names and not graphs._patches
    layers.remove()


def test_a_weak_reference_to_a_model_will_do(runtime):
    model = Block()
    layers = fastprof.annotate_layers(weakref.proxy(model), "net")
    with capturing(runtime):
        model(torch.ones(2, 4))
    assert ("addmm", "net.fc", FORWARD) in marked(runtime)
    layers.remove()


def test_run_annotates_all_modules_of_the_program(runtime):
    model = nn.Sequential(Block())
    own = annotate_graphs()
    with capturing(runtime):
        model(torch.ones(2, 4))
    own.remove()
    modules = {module for _, module, _ in marked(runtime) if module}
    assert any(module.endswith("0.fc") for module in modules)


def test_without_the_bindings_nothing_is_replaced(monkeypatch):
    monkeypatch.setattr(graphs, "_names", [])
    before = torch.cuda.graph.__enter__
    layers = fastprof.annotate_layers(Block())
    assert (torch.cuda.graph.__enter__ is before) != graphs.is_available()
    layers.remove()
    assert torch.cuda.graph.__enter__ is before
