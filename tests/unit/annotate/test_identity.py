"""Wrapped functions behave like the originals: introspection, copies, pickles."""

import copy
import functools
import inspect
import io
import pickle
import pydoc
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional

import fastprof
from fastprof._core._hooks import Wrapped
from support import torch_server

NAMES = {
    "relu": lambda: functional.relu,
    "linear": lambda: functional.linear,
    "max_pool2d": lambda: functional.max_pool2d,
    "add": lambda: torch.add,
    "einsum": lambda: torch.einsum,
    "Tensor.add": lambda: torch.Tensor.add,
    "Tensor.__add__": lambda: torch.Tensor.__add__,
    "Tensor.split": lambda: torch.Tensor.split,
    "Tensor.backward": lambda: torch.Tensor.backward,
    "linalg.det": lambda: torch.linalg.det,
    "fft.fft": lambda: torch.fft.fft,
    "LSTM.forward": lambda: nn.LSTM.forward,
    "SGD.step": lambda: torch.optim.SGD.step,
}


def help_text(function):
    """The text of help() without its title, which contains the type of C methods."""
    return pydoc.render_doc(function).partition("\n")[2]


def seen(function):
    """The introspectable properties of a function."""

    def or_error(ask):
        try:
            return ask(function)
        except (TypeError, ValueError, AttributeError, OSError) as error:
            return type(error)

    return {
        ask.__name__: or_error(ask)
        for ask in (
            *(inspect.signature, inspect.getdoc, inspect.getsource, inspect.getsourcefile),
            *(inspect.getmodule, inspect.isfunction, inspect.isbuiltin, inspect.isroutine),
            *(inspect.ismethoddescriptor, inspect.getfullargspec, help_text),
            *(inspect.isgeneratorfunction, inspect.iscoroutinefunction, callable, hash),
            *(repr, str, vars),
        )
    } | {
        name: or_error(lambda f, name=name: getattr(f, name))
        for name in (
            *(
                "__name__",
                "__qualname__",
                "__module__",
                "__doc__",
                "__defaults__",
                "__kwdefaults__",
            ),
            *("__annotations__", "__code__", "__globals__", "__dict__", "__closure__", "__self__"),
            *("__objclass__", "__text_signature__", "__class__", "no_such_attribute"),
        )
    }


@pytest.mark.parametrize("name", NAMES)
def test_introspection_tells_the_same(name):
    before = seen(NAMES[name]())
    with fastprof.init():
        function = NAMES[name]()
        assert isinstance(function, Wrapped)
        after = seen(function)
    assert {key: after[key] for key in after if after[key] != before[key]} == {}


def test_python_functions_of_torch_are_functions(annotated):
    assert isinstance(functional.relu, Wrapped)
    assert isinstance(functional.relu, types.FunctionType)
    assert isinstance(torch.add, types.BuiltinFunctionType)
    assert isinstance(torch.Tensor.add, types.MethodDescriptorType)
    assert isinstance(torch.ones(1).add, types.MethodType | types.BuiltinMethodType)


def test_a_wrapped_function_is_equal_to_the_function():
    relu, add = functional.relu, torch.Tensor.add
    table = {relu: 1, add: 2}
    with fastprof.init():
        assert functional.relu == relu and relu == functional.relu
        assert torch.Tensor.add == add and bool(torch.Tensor.add != add) is False
        assert functional.relu != functional.gelu and functional.relu != 3
        assert table[functional.relu] == 1 and table[torch.Tensor.add] == 2
        assert functional.relu in {relu} and relu in [functional.relu]
        assert hash(functional.relu) == hash(relu)


def test_what_is_wrapped_further_is_traced_as_itself(annotated):
    @functools.wraps(functional.relu)
    def twice(x):
        return functional.relu(x) * 2

    assert "_torchdynamo_inline" not in vars(twice) and "_torchdynamo_inline" not in vars(
        functools.update_wrapper(lambda: 1, nn.LSTM.forward)
    )
    assert torch.compile(twice, backend="eager")(torch.ones(1)).item() == 2


def test_two_names_of_one_function_stay_one():
    with fastprof.init():
        assert functional.conv2d is torch.conv2d and torch.einsum is torch.functional.einsum
        assert functional.gelu is torch._C._nn.gelu and torch.norm is torch.functional.norm


def test_torchs_own_layers_know_their_default_activation(annotated):
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    assert layer.activation_relu_or_gelu == 1 and layer.activation is functional.relu
    assert nn.TransformerDecoderLayer(4, 2, 8).activation is functional.relu


def test_attributes_that_are_set_are_the_functions(annotated):
    functional.relu.seen = 1
    assert functional.relu.seen == 1 and vars(functional.relu)["seen"] == 1
    assert functional.relu.__wrapped__.seen == 1
    del functional.relu.seen
    assert not hasattr(functional.relu, "seen")


def test_functions_and_methods_can_be_held_by_classes_and_partials(annotated):
    class Holds:
        activation = functional.relu
        free = staticmethod(functional.relu)
        builtin = torch.sigmoid

    x = torch.tensor([-1.0, 1.0])
    assert Holds.free(x).tolist() == Holds().free(x).tolist() == [0, 1]
    assert Holds.activation(x).tolist() == [0, 1]
    assert Holds().builtin(x).tolist() == torch.sigmoid(x).tolist()
    with pytest.raises(TypeError):
        Holds().activation(x, x)  # as a class attribute: bound
    assert functools.partial(torch.add, 1)(x).tolist() == [0, 2]
    assert functools.reduce(torch.add, [x, x, x]).tolist() == [-3, 3]


MODELS = {
    "encoder": lambda: nn.TransformerEncoderLayer(4, 2, 8),
    "encoder, relu": lambda: nn.TransformerEncoderLayer(4, 2, 8, activation=functional.relu),
    "encoder, gelu": lambda: nn.TransformerEncoderLayer(4, 2, 8, activation=functional.gelu),
    "builtin": lambda: Holding(torch.sigmoid),
    "method": lambda: Holding(torch.Tensor.sigmoid),
    "linear": lambda: Holding(functional.logsigmoid),
    "recurrent": lambda: nn.LSTM(2, 2),
}


class Holding(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = activation

    def forward(self, x):
        return self.activation(x)


def copies(model):
    """Copies of a model made in every way: title and copy."""
    yield "deepcopy", copy.deepcopy(model)
    yield "copy", copy.copy(model)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        yield f"pickle {protocol}", pickle.loads(pickle.dumps(model, protocol))
    file = io.BytesIO()
    pickle.dump(model, file)
    yield "pickle.dump", pickle.loads(file.getvalue())
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    yield "torch.save", torch.load(file, weights_only=False)
    from multiprocessing.reduction import ForkingPickler

    yield "multiprocessing", pickle.loads(ForkingPickler.dumps(model))


def held(model):
    """The functions in a model, unwrapped."""
    functions = [getattr(model, "activation", None)]
    return [
        function.__wrapped__ if isinstance(function, Wrapped) else function
        for function in functions
    ]


@pytest.mark.parametrize("title", MODELS)
@pytest.mark.parametrize("built", ["before", "after"])
def test_models_that_hold_functions_are_copied_and_pickled(title, built):
    model = MODELS[title]() if built == "before" else None
    with fastprof.init():
        model = model or MODELS[title]()
        within = list(copies(model))
    outside = list(copies(model))
    for way, each in within + outside:
        assert [*map(id, held(each))] == [*map(id, held(model))], way
        assert [*each.state_dict()] == [*model.state_dict()], way
    x = torch.rand(1, 4, 4) if title != "recurrent" else torch.rand(1, 2, 2)
    expected = model.eval()(x)
    for way, each in within:
        result = each.eval()(x)
        torch.testing.assert_close(result, expected, msg=way)


def test_a_pickle_is_read_where_nothing_is_installed(annotated, tmp_path):
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(MODELS["encoder"]()))
    program = f"""
import pickle, sys, torch
sys.modules["fastprof"] = None
model = pickle.load(open({str(path)!r}, "rb"))
assert model.activation is torch.nn.functional.relu
    """
    torch_server.run_source(program, tmp_path)


def test_weights_are_saved_and_loaded_as_ever(annotated, tmp_path):
    model = nn.Linear(2, 2)
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    state = torch.load(tmp_path / "weights.pt", weights_only=True)
    assert state["weight"].tolist() == model.weight.tolist()
    assert model.load_state_dict(state, assign=True).missing_keys == []
