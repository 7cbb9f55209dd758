"""torch.compile, export, FX and jit see the originals: no graph breaks, no recompilation."""

import shutil
from itertools import product

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional

import fastprof
from fastprof._core._hooks import Wrapped
from support.annotation_modes import MODES, listening
from support.hypothesis_profiles import some

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Scaled(nn.Module):
    """A layer whose forward is wrapped."""

    def forward(self, x):
        return x * 2


class Net(nn.Module):
    """Functions, methods, operators, indexing, a wrapped method, and manual layers."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scaled = Scaled()
        self.encoder = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.activation = functional.gelu

    def forward(self, x):
        with fastprof.layer("first"):
            y = functional.relu(self.linear(x))
        y = self.branch(y) + y.add(1).mul_(2) - torch.sigmoid(x)
        y = self.scaled(self.activation(y))
        y[0] = torch.cat([y[1:2], torch.zeros(1, 4)]).sum(0)
        y = torch.einsum("ij,kj->ik", y, self.linear.weight) @ torch.eye(4)
        y = self.encoder(y[None])[0]
        return functional.softmax(y, -1), y.split(2, 1)[0], torch.linalg.norm(y), (y > 0).sum()

    @fastprof.layer("branch")
    def branch(self, y):
        return torch.where(y > 0.5, y, -y) / (1 + abs(y)) ** 2


pytestmark = pytest.mark.filterwarnings("ignore")  # of torch.jit, which is deprecated


@pytest.fixture(autouse=True)
def clean():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    fastprof.uninit()
    torch._dynamo.reset()


def net():
    torch.manual_seed(0)
    return Net().eval()


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def graphs():
    stats = torch._dynamo.utils.counters["stats"]
    return stats["unique_graphs"]


@pytest.mark.parametrize("backend", some(["aot_eager", "eager"], 2))
def test_compiled_whole_and_once_whoever_listens(backend):
    expected = net()(X)
    fastprof.init()
    fastprof.wrap(Scaled, "forward")
    compiled = torch.compile(net(), backend=backend, fullgraph=True)
    for mode in MODES:
        with listening(mode) as heard:
            assert_same(compiled(X), expected)
        assert heard.is_nested()
    fastprof.init()
    with torch.profiler.profile(), fastprof.layer("around"):
        assert_same(compiled(X), expected)
    assert graphs() == 1 and not torch._dynamo.utils.counters["graph_break"]


@pytest.mark.skipif(not shutil.which("g++"), reason="inductor needs a compiler: install g++")
def test_inductors_kernels_are_made_once_whoever_listens():
    def function(x):
        return functional.relu(x).add(1) * torch.sigmoid(x)

    expected = function(X)
    fastprof.init()
    compiled = torch.compile(function, fullgraph=True)
    for mode in MODES:
        with listening(mode):
            torch.testing.assert_close(compiled(X), expected)
    assert graphs() == 1


def test_what_was_compiled_before_init_is_compiled_once_more_and_never_again():
    def of_functions(x):
        return torch.sigmoid(x).add(1) * functional.gelu(x)

    def of_methods(x):
        return (x + 1).mul(2)[0]

    for function, more in ((of_functions, 1), (of_methods, 0)):
        fastprof.uninit()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(function, backend="eager", fullgraph=True)
        expected = compiled(X)
        for change in (fastprof.init, fastprof.uninit, fastprof.init):
            change()
            for mode in MODES:
                with listening(mode):
                    torch.testing.assert_close(compiled(X), expected)
        assert graphs() == 1 + more


def test_explain_finds_one_graph_and_no_breaks():
    fastprof.init()
    told = torch._dynamo.explain(net())(X)
    assert told.graph_count == 1 and told.graph_break_count == 0
    targets = [
        node.target
        for graph in told.graphs
        for node in graph.graph.nodes
        if node.op == "call_function"
    ]
    assert functional.gelu in targets and torch.sigmoid in targets
    assert not any("fastprof" in graph.code for graph in told.graphs)


def test_gradients_of_compiled_modules_and_of_compiled_functions():
    fastprof.init()
    x = X.clone().requires_grad_()
    model = net()

    def of_model(x):
        return functional.mse_loss(model(x)[0], torch.ones(3, 4))

    compiled = torch.compile(of_model, backend="aot_eager", fullgraph=True)
    with listening(MODES[1]):
        compiled(x).backward()
    y = X.clone().requires_grad_()
    of_model(y).backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_compiled_submodules_with_layers_have_one_range():
    fastprof.init()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    expected = model(X)
    model[2] = torch.compile(model[2], backend="eager", fullgraph=True)
    with fastprof.annotate_layers(model), listening(MODES[2]) as heard:
        model(X)
        torch.testing.assert_close(model(X), expected)
    layers = [text for text in heard.texts() if text.startswith("layer:")]
    assert layers == ["layer:0", "layer:1", "layer:2"] * 2 and heard.is_nested()


def test_a_compiled_model_with_layers_is_whole():
    fastprof.init()
    model = net()
    expected = model(X)
    with fastprof.annotate_layers(model, "net"):
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        with listening(MODES[2]) as heard:
            assert_same(compiled(X), expected)
    assert heard.is_nested()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.relu = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x):
        return self.relu(self.linear(x))


def layers(model):
    """The layers opened by a call of a model after compilation."""
    expected = model(X)
    with listening(MODES[2]) as heard:
        assert_same(model(X), expected)
    assert heard.is_nested()
    return [text.removeprefix("layer:") for text in heard.texts() if text.startswith("layer:")]


def test_a_compiled_model_is_a_layer_with_its_name_or_that_of_its_class():
    for name, own in (("", "Block"), ("net", "net")):
        compiled = torch.compile(Block(), backend="eager", fullgraph=True)
        fastprof.annotate_layers(compiled, name)
        assert layers(compiled) == [own]
    within = Block()
    within.compile(backend="eager", fullgraph=True)
    fastprof.annotate_layers(within)
    assert layers(within) == ["Block"]
    parts = nn.Sequential(torch.compile(Block(), backend="eager"), Block())
    fastprof.annotate_layers(parts)
    assert layers(parts) == ["0", "1", "1.linear", "1.relu"]


def test_parts_of_a_compiled_model_have_their_own_names_where_the_compiler_is_off():
    model = nn.Sequential(Block(), nn.ReLU())
    fastprof.annotate_layers(compiled := torch.compile(model, backend="eager"))
    with torch.compiler.set_stance("force_eager"):
        result = layers(compiled)
    names = [name for name, _ in model.named_modules() if name]
    assert result == ["Sequential", *names] and names == ["0", "0.linear", "0.relu", "1"]


def test_exported_programs_are_the_same():
    fastprof.uninit()
    before = torch.export.export(net(), (X,))
    fastprof.init()
    fastprof.wrap(Scaled, "forward")
    after = torch.export.export(net(), (X,))
    assert [str(node.target) for node in before.graph.nodes] == [
        str(node.target) for node in after.graph.nodes
    ]
    assert_same(after.module()(X), net()(X))


def test_traces_of_make_fx_are_the_same():
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x):
        return functional.relu(x).add(1) @ torch.eye(4), x[0] * torch.sigmoid(x)

    before = make_fx(function)(X).code
    fastprof.init()
    for mode in MODES:
        with listening(mode):
            assert make_fx(function)(X).code == before


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(3, 2, 1), nn.BatchNorm1d(2)

    def forward(self, x):
        y = functional.relu(self.norm(self.conv(x)))
        return torch.add(functional.gelu(y), y.mul(2)) + torch.cat([y, y], 0)[:2]


@pytest.mark.parametrize("mode", MODES)
def test_symbolic_traces_have_targets_that_are_recognised(mode):
    built_before = {functional.relu, torch.add, torch.cat, functional.gelu}
    fastprof.init()
    with listening(mode):
        traced = torch.fx.symbolic_trace(Plain().eval())
    targets = {node.target for node in traced.graph.nodes if node.op == "call_function"}
    assert built_before <= targets
    assert {functional.relu, torch.add, torch.cat, functional.gelu} <= targets
    assert "torch.nn.functional.relu(" in traced.code and "torch.add(" in traced.code
    torch.testing.assert_close(traced(X[None]), traced(X[None]))
    fastprof.uninit()
    code = torch.fx.symbolic_trace(Plain().eval()).code
    assert traced.code == code


def test_graphs_are_copied_pickled_and_run_after_uninit():
    import copy
    import pickle

    fastprof.init()
    traced = torch.fx.symbolic_trace(Plain().eval())
    expected = traced(X[None])
    for each in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        torch.testing.assert_close(each(X[None]), expected)
    fastprof.uninit()
    for each in (copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        torch.testing.assert_close(each(X[None]), expected)


def test_convolutions_are_fused_with_their_norms():
    from torch.fx.experimental.optimization import fuse

    fastprof.init()
    model = Plain().eval()
    fused = fuse(model)
    assert not any(isinstance(module, nn.BatchNorm1d) for module in fused.modules())
    torch.testing.assert_close(fused(X[None]), model(X[None]))


class Scriptable(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.recurrent = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        y = functional.relu(self.linear(x))
        y = functional.max_pool1d(y[None], 1)[0].add(1) + torch.einsum("ij->ij", y)
        return self.recurrent(y[None])[0], functional.softmax(y, -1) @ torch.eye(4)


JITTED = product(["before init", "after init"], ["script", "trace"])


@pytest.mark.parametrize(("made", "how"), some(JITTED, 3))
def test_jit_makes_and_runs_the_same(made, how):
    model = Scriptable().eval()
    expected = model(X)

    def make():
        return torch.jit.script(model) if how == "script" else torch.jit.trace(model, X)

    jitted = make() if made == "before init" else None
    fastprof.init()
    jitted = jitted or make()
    assert isinstance(functional.relu, Wrapped)
    for mode in MODES:
        with listening(mode) as heard:
            assert_same(jitted(X), expected)
        assert heard.is_nested()


def test_jit_scripts_functions_and_saves_modules(tmp_path):
    fastprof.init()

    @torch.jit.script
    def function(x):
        return torch.relu(x).add(1) * 2

    assert function(X).tolist() == (torch.relu(X).add(1) * 2).tolist()
    torch.jit.script(Scriptable().eval()).save(tmp_path / "model.pt")
    loaded = torch.jit.load(tmp_path / "model.pt")
    fastprof.wrap(Scriptable, "forward")
    again = torch.jit.script(Scriptable().eval())
    assert again.code == loaded.code
    assert torch.jit.trace_module(Scriptable().eval(), {"forward": X})(X)[0].shape == (1, 3, 4)


def test_scripted_parts_of_annotated_models_run_with_layers():
    fastprof.init()
    model = nn.Sequential(nn.Linear(4, 4), torch.jit.script(nn.Linear(4, 2)))
    expected = model(X)
    with fastprof.annotate_layers(model), listening(MODES[2]) as heard:
        torch.testing.assert_close(model(X), expected)
    assert heard.is_nested()
