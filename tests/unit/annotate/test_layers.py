"""Layer ranges: names and nesting; the model computes and copies as before."""

import copy
import pickle
import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.utils.checkpoint import checkpoint

import fastprof
from fastprof import AnnotateError
from fastprof._core import _layers
from support import torch_server
from support.annotation_modes import TOOL, listening
from support.waiting import in_threads
from unit.annotate.annotation_outcomes import described


class Block(nn.Module):
    def __init__(self, fails=False):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.fails = fails

    def forward(self, x):
        y = self.inner(x)
        if self.fails:
            raise ValueError("in forward")
        return y


def model(fails=False):
    torch.manual_seed(0)
    return nn.Sequential(Block(), nn.ModuleDict({"a": nn.ReLU()})["a"], Block(fails))


X = torch.ones(2, 4)


def layers(heard):
    """The layers' names by start."""
    return [text.removeprefix("layer:") for text in heard.texts() if text.startswith("layer:")]


def test_layers_have_their_qualified_names_and_end_with_remove():
    net = model()
    expected = net(X)
    annotated = fastprof.annotate_layers(net)
    with listening(TOOL) as heard:
        assert torch.equal(net(X), expected)
    assert layers(heard) == ["0", "0.inner", "1", "2", "2.inner"] and heard.is_nested()
    annotated.remove()
    annotated.remove()
    with listening(TOOL) as heard:
        net(X)
    assert layers(heard) == []
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_a_name_for_the_model_stands_before_those_of_its_parts(heard):
    net = model()
    with fastprof.annotate_layers(net, "net"), listening(TOOL) as inner:
        net(X)
    assert layers(inner) == ["net", "net.0", "net.0.inner", "net.1", "net.2", "net.2.inner"]


def test_layers_by_hand_nest_and_decorate(heard):
    @fastprof.layer("decorated")
    def function(x, *, factor=2):
        """Doubles."""
        return x * factor

    outer = fastprof.layer("outer")
    with outer, fastprof.layer("inner"), outer:
        assert function(X).tolist() == (X * 2).tolist()
    assert function.__name__ == "function" and function.__doc__ == "Doubles."
    with pytest.raises(KeyError), outer:
        raise KeyError
    assert next(iter([*(function(X, factor=i) for i in range(3))])).sum() == 0


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_layer_without_a_name_is_an_error(name):
    with pytest.raises(AnnotateError, match="layer: expected a non-empty name"):
        fastprof.layer(name)


def test_what_is_no_module_has_no_layers():
    with pytest.raises(AnnotateError, match=r"expected a torch.nn.Module"):
        fastprof.annotate_layers(lambda x: x)


def test_a_forward_that_raises_leaves_no_range_open(heard):
    net = model(fails=True)
    with fastprof.annotate_layers(net, "net"):
        for _ in range(2):
            with pytest.raises(ValueError, match="in forward"):
                net(X)
        with listening(TOOL) as inner:
            with pytest.raises(ValueError, match="in forward"):
                net(X)
            assert inner.is_nested()
            net[0](X)
        assert layers(inner)[-2:] == ["net.0", "net.0.inner"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_layers_run_again_in_backward_with_their_ranges(heard, reentrant):
    net = model()

    def gradients():
        net.zero_grad()
        x = X.clone().requires_grad_()
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        return [x.grad, *(p.grad for p in net.parameters())]

    expected = described(gradients())
    with fastprof.annotate_layers(net, "net"), listening(TOOL) as inner:
        assert described(gradients()) == expected
        assert inner.is_nested()
    assert layers(inner).count("net") == 2


def test_a_module_that_is_used_twice_has_the_name_of_its_first_use():
    shared = nn.Linear(4, 4)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    with fastprof.annotate_layers(net), listening(TOOL) as heard:
        net(X)
    assert layers(heard) == ["0", "1", "0"] and heard.is_nested()


def test_a_module_that_calls_itself_nests():
    class Again(nn.Module):
        def forward(self, x, n=2):
            return self(x + 1, n - 1) if n else x

    net = nn.Sequential(Again())
    with fastprof.annotate_layers(net), listening(TOOL) as heard:
        assert net(X).sum() == 24
    assert layers(heard) == ["0", "0", "0"] and heard.is_nested()


def test_annotated_models_are_copied_pickled_and_saved(heard, tmp_path):
    net = model()
    expected = net(X)
    with fastprof.annotate_layers(net):
        torch.save(net, tmp_path / "model.pt")
        copies = [
            (copy.deepcopy(net), ["0", "0.inner", "1", "2", "2.inner"]),
            (pickle.loads(pickle.dumps(net)), []),
            (torch.load(tmp_path / "model.pt", weights_only=False), []),
        ]
        assert [*net.state_dict()] == [*model().state_dict()]
        for each, named in copies:
            with listening(TOOL) as inner:
                assert torch.equal(each(X), expected)
            assert layers(inner) == named and inner.is_nested()


def test_a_saved_model_is_loaded_where_fastprof_is_not_installed(annotated, tmp_path):
    net = nn.Sequential(nn.Linear(4, 4), nn.TransformerEncoderLayer(4, 2, 8)).eval()
    fastprof.annotate_layers(net, "net")
    torch.save([net, net(X)], tmp_path / "model.pt")
    program = f"""
        import sys
        sys.modules["fastprof"] = None
        import torch
        net, expected = torch.load({str(tmp_path / "model.pt")!r}, weights_only=False)
        torch.testing.assert_close(net(torch.ones(2, 4)), expected)
    """
    torch_server.run_source(program, tmp_path)


def test_each_thread_has_layers_of_its_own(heard):
    net = model()
    expected = net(X)
    results, together = [], threading.Barrier(3)

    def work():
        together.wait(10)
        for _ in range(20):
            with fastprof.layer("thread"):
                results.append(torch.equal(net(X), expected))

    with fastprof.annotate_layers(net):
        in_threads(*[work] * 3)
    assert results == [True] * 60
    assert _layers._of_thread.open == []


def test_other_hooks_and_keyword_arguments_are_as_they_were(heard):
    log = []

    class Named(nn.Module):
        def forward(self, x, *, scale):
            return {"y": x * scale, "none": None}

    net = Named()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    with fastprof.annotate_layers(nn.Sequential(net)):
        net.register_forward_hook(lambda module, args, output: log.append(type(output)))
        result = net(X, scale=3)
    assert result["y"].tolist() == [[6.0] * 4] * 2 and result["none"] is None and log == [dict]


def test_lists_of_modules_and_functional_calls_work(heard):
    net = nn.ModuleList([Block(), Block()])
    with fastprof.annotate_layers(net, "list"), listening(TOOL) as inner:
        y = net[1](net[0](X))
        z = torch.func.functional_call(net[0], dict(net[0].named_parameters()), (X,))
    assert y.shape == z.shape == (2, 4)
    first, second = ["list.0", "list.0.inner"], ["list.1", "list.1.inner"]
    assert layers(inner) == [*first, *second, *first]
