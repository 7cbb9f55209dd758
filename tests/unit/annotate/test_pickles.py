"""All picklers accept objects with torch functions, and restore the same functions."""

import functools
import io
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn
from torch.nn import functional

import fastprof
from fastprof._core._hooks import Wrapped
from support import torch_server

DUMPS, PICKLER = pickle.dumps, pickle.Pickler  # as imported by name


class Holding(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held = held


def dumped(pickler, value):
    file = io.BytesIO()
    pickler(file).dump(value)
    return file.getvalue()


def by_cloudpickle(value):
    return pytest.importorskip("cloudpickle").dumps(value)


def by_dill(value):
    # By reference: otherwise, classes of a test module are copied.
    return pytest.importorskip("dill").dumps(value, byref=True)


def by_joblib(value):
    file = io.BytesIO()
    pytest.importorskip("joblib").dump(value, file)
    file.seek(0)
    return file.getvalue()


def by_torch(value):
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


class Own(pickle.Pickler):
    """A program's own pickler with a reducer_override."""

    def reducer_override(self, value):
        return (complex, (1, 2)) if value is Own else NotImplemented


WAYS = {
    "pickle.dumps": lambda value: pickle.dumps(value),
    "dumps, imported by name": lambda value: DUMPS(value),
    "pickle.Pickler": lambda value: dumped(pickle.Pickler, value),
    "Pickler, imported by name": lambda value: dumped(PICKLER, value),
    "in Python": lambda value: dumped(pickle._Pickler, value),
    "own": lambda value: dumped(Own, value),
    "multiprocessing": lambda value: bytes(ForkingPickler.dumps(value)),
    "torch.save": by_torch,
    "cloudpickle": by_cloudpickle,
    "dill": by_dill,
    "joblib": by_joblib,
}
HELD = {
    "a builtin": lambda: functional.gelu,
    "a function": lambda: functional.relu,
    "of torch": lambda: torch.sigmoid,
    "of torch.functional": lambda: torch.einsum,
    "of torch.linalg": lambda: torch.linalg.norm,
    "a method": lambda: torch.Tensor.tanh,
    "in a list": lambda: [functional.gelu, functional.relu],
    "in a dict": lambda: {"first": functional.gelu, "second": functional.silu},
    "in a partial": lambda: functools.partial(functional.gelu, approximate="tanh"),
}


def own(held):
    """With the original functions in place of the wrappers."""
    if isinstance(held, list):
        return [own(each) for each in held]
    if isinstance(held, dict):
        return {key: own(each) for key, each in held.items()}
    if type(held) is functools.partial:
        return own(held.func), held.args, held.keywords
    return held.__wrapped__ if type(held).__mro__[-2] is Wrapped else held


def loaded(way, data):
    if way == "torch.save":
        return torch.load(io.BytesIO(data), weights_only=False)
    if way == "joblib":
        return pytest.importorskip("joblib").load(io.BytesIO(data))
    return pickle.loads(data)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("title", HELD)
def test_what_was_built_at_any_time_is_pickled_at_any_time(way, title):
    expected = own(HELD[title]())
    before = Holding(HELD[title]()), HELD[title]()
    with fastprof.init():
        after = Holding(HELD[title]()), HELD[title]()
        inside = [(each, WAYS[way](each)) for each in (*before, *after)]
        for (
            _,
            data,
        ) in inside:  # readable with and without annotation
            result = loaded(way, data)
            assert own(getattr(result, "held", result)) == expected
    outside = [(each, WAYS[way](each)) for each in (*before, after[0])]
    for _, data in [*inside, *outside]:
        result = loaded(way, data)
        result = getattr(result, "held", result)
        assert own(result) == expected and type(result) is type(HELD[title]())


def test_a_pickler_keeps_what_it_does_itself():
    for _ in range(2):
        assert pickle.loads(dumped(Own, Own)) == complex(1, 2)
        with fastprof.init():
            assert pickle.loads(dumped(Own, Own)) == complex(1, 2)

            class Late(pickle.Pickler):
                def reducer_override(self, value):
                    return (complex, (3, 4)) if value is Late else NotImplemented

            assert pickle.loads(dumped(Late, Late)) == complex(3, 4)


def test_what_cannot_be_pickled_cannot(annotated):
    for way in ("pickle.dumps", "pickle.Pickler", "in Python"):
        with pytest.raises((pickle.PicklingError, AttributeError)):
            WAYS[way](lambda: 1)


def test_picklers_are_as_they_were_after_uninit():
    before = dict(vars(pickle.Pickler)), dict(vars(pickle._Pickler)), dict(vars(Own))
    with fastprof.init():
        assert "reducer_override" in vars(pickle.Pickler)
    assert before == (dict(vars(pickle.Pickler)), dict(vars(pickle._Pickler)), dict(vars(Own)))
    assert not hasattr(pickle._Pickler, "reducer_override")


def test_cloudpickle_that_is_imported_later_takes_functions_held_by_a_program(tmp_path):
    pytest.importorskip("cloudpickle")
    program = """
        import pickle
        from torch.nn.functional import gelu, relu

        import fastprof
        fastprof.init()
        import cloudpickle

        def activate(x):
            return gelu(x), relu(x)

        again = pickle.loads(cloudpickle.dumps(activate))
        assert again.__globals__["gelu"] == gelu and again.__globals__["relu"] == relu
    """
    torch_server.run_source(program, tmp_path)


def test_models_that_hold_functions_are_scripted_whenever_they_were_built():
    class Activation(nn.Module):
        def __init__(self):
            super().__init__()
            self.gelu, self.relu = functional.gelu, functional.relu

        def forward(self, x):
            return self.gelu(self.relu(x))

    x = torch.tensor([-1.0, 2.0])
    before = Activation()
    expected = before(x)
    with fastprof.init():
        after = Activation()
        for model in (before, after):
            assert torch.equal(torch.jit.script(model)(x), expected)
            assert torch.equal(torch.jit.trace(model, x)(x), expected)
            assert model.gelu is functional.gelu and type(model.gelu) is not type(len)
