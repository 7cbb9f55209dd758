"""Memory: objects are freed as early as without annotation, also with a listener."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

import fastprof


@pytest.fixture(autouse=True, params=[False, True], ids=["", "function stack"])
def function_stack(request, heard):
    gc.collect()
    gc.disable()  # only reference counting frees
    fastprof.init(enable_function_stack=request.param)
    yield
    gc.enable()


def test_arguments_and_results_are_freed_at_once():
    x = torch.ones(3)
    kept = [weakref.ref(x)]
    y = torch.add(x, torch.nn.functional.relu(x))
    kept += [weakref.ref(y), weakref.ref(torch.stack([x, y]))]
    del x, y
    assert [each() for each in kept] == [None] * 3


def test_variables_of_methods_are_freed_at_once():
    class Net(torch.nn.Module):
        def forward(self, x):
            first = x * 2
            kept = weakref.ref(first)
            second = torch.relu(first)
            del first
            alive = kept() is not None
            inner = lambda: self  # noqa: E731  puts self into a cell
            return second, alive, inner

    result, alive, _inner = Net()(torch.ones(2))
    assert not alive and result.tolist() == [2, 2]


def test_what_locals_tells_is_left_alone():
    class Holder:
        def method(self, x):
            told = locals()
            torch.add(x, 1)
            later = 1
            torch.add(x, later)
            return sorted(told)

    assert Holder().method(torch.ones(1)) == ["self", "x"]


def test_an_argument_of_a_call_that_failed_is_freed_with_the_exception():
    x = torch.ones(3)
    kept = weakref.ref(x)
    try:
        torch.mm(x, x)
    except RuntimeError as error:
        told = str(error)
    del x
    assert kept() is None and told


def test_models_are_freed_with_their_markers():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 1

    fastprof.wrap(Net, "forward")
    net = Net()
    with fastprof.annotate_layers(net, "net"):
        net(torch.ones(1))
    kept = weakref.ref(net)
    del net
    gc.collect()
    assert kept() is None
