"""__torch_function__: subclasses, modes and tables keyed by functions see the originals."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch.nn import functional
from torch.overrides import TorchFunctionMode

import fastprof
from unit.annotate.annotation_outcomes import outcomes

BUILT_BEFORE = {
    torch.add: "add",
    torch.cat: "cat",
    torch.Tensor.add: "Tensor.add",
    torch.Tensor.__add__: "Tensor.__add__",
    functional.relu: "relu",
    functional.linear: "linear",
    torch.einsum: "einsum",
    torch.fft.fft: "fft",
}


class Logged(torch.Tensor):
    """Records every function it receives, with the types and the arguments' names."""

    log: list = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.log.append((func, types, len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


class Other(torch.Tensor):
    """Another subclass, which defers to the first."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Duck:
    """Not a tensor, but with __torch_function__."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs or {})


class ModeLog(TorchFunctionMode):
    def __init__(self):
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(func)
        return func(*args, **(kwargs or {}))


def logged(*values):
    return torch.tensor(values).as_subclass(Logged)


def calls():
    """Calls with a subclass as every kind of argument."""
    x, y = logged(1.0, 2.0), torch.ones(2)
    yield "builtin", lambda: torch.add(x, y)
    yield "second", lambda: torch.add(y, x)
    yield "by name", lambda: torch.add(input=x, other=y)
    yield "second by name", lambda: torch.add(y, other=x)
    yield "in a list", lambda: torch.cat([y, x])
    yield "in a tuple, by name", lambda: torch.cat(tensors=(y, x), dim=0)
    yield "as out", lambda: torch.add(y, y, out=x)
    yield "method", lambda: x.add(y)
    yield "method of another", lambda: y.add(x)
    yield "method, not bound", lambda: torch.Tensor.add(y, x)
    yield "sign", lambda: x + y
    yield "sign, on the right", lambda: y + x
    yield "sign with a number", lambda: 2 - x
    yield "sign in place", lambda: x.__iadd__(1)
    yield "index", lambda: x[0]
    yield "write", lambda: x.__setitem__(0, 5.0)
    yield "F in Python", lambda: functional.relu(x)
    yield "F in C", lambda: functional.linear(x, torch.ones(3, 2))
    yield "F in C, weight", lambda: functional.linear(y, logged(1.0, 2.0))
    yield "functional", lambda: torch.einsum("i,i->", x, y)
    yield "fft", lambda: torch.fft.fft(x)
    yield "linalg", lambda: torch.linalg.norm(x)
    yield "special", lambda: torch.special.i0(x)
    yield "pool", lambda: functional.max_pool1d(x[None], 2)
    yield "where", lambda: torch.where(x > 1, x, y)
    yield "split", lambda: x.split(1)
    yield "foreach", lambda: torch._foreach_add([y, x], 1)
    yield "two subclasses", lambda: torch.add(torch.ones(2).as_subclass(Other), x)
    yield "other by name", lambda: torch.add(x, other=torch.ones(2).as_subclass(Other))
    yield "nobody knows", lambda: torch.add(torch.ones(2).as_subclass(Other), y)
    yield "duck", lambda: torch.add(Duck(), x)
    yield "duck alone", lambda: torch.mean(Duck(), dim=0)
    yield "duck in F", lambda: functional.relu(Duck())
    yield "duck in C of F", lambda: functional.gelu(Duck(), approximate="tanh")
    yield "duck in a list", lambda: torch.stack([Duck(), Duck()], dim=1)
    yield "duck and wrong arguments", lambda: torch.add(Duck(), no_such=1)
    yield "duck and too few arguments", lambda: torch.mm(Duck())
    yield "duck not wanted", lambda: torch.zeros(Duck())
    yield "new", lambda: x.new_zeros(2)
    yield "like", lambda: torch.zeros_like(x)
    yield "shape", lambda: (x.shape, x.dtype, x.T, x.grad)


def log_of_calls():
    actual = {}
    for title, call in calls():
        Logged.log.clear()
        try:
            result = call()
            told = type(result).__name__ if not isinstance(result, tuple) else repr(result)
        except TypeError as error:
            told = str(error)
        log = [(func.__name__, types, *rest) for func, types, *rest in Logged.log]
        actual[title] = told, log
    return actual


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_subclasses_are_handed_the_same_calls():
    plain, *annotated = outcomes(lambda: [log_of_calls()])
    for result in annotated:
        for title, told in plain[1][0].items():
            assert result[1][0][title] == told, title


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_modes_are_handed_the_same_calls():
    def program():
        found = {}
        for title, call in calls():
            with ModeLog() as outer, ModeLog() as inner:
                try:
                    call()
                except TypeError as error:
                    found[f"{title} is refused"] = str(error)
            found[title] = [[func.__name__ for func in mode.log] for mode in (outer, inner)]
        return found

    plain, *annotated = outcomes(program)
    for found in annotated:
        for title, told in plain.items():
            assert found[title] == told, title


FUNCTIONS = [
    ("torch.add", lambda x: torch.add(x, 1)),
    ("torch.add", lambda x: torch.add(input=x, other=1)),
    ("torch.add", lambda x: torch.add(torch.ones(2), x)),
    ("torch.cat", lambda x: torch.cat([torch.ones(1), x])),
    ("torch.stack", lambda x: torch.stack(tensors=(x, x))),
    ("torch.Tensor.add", lambda x: x.add(1)),
    ("torch.Tensor.add", lambda x: torch.ones(2).add(x)),
    ("torch.Tensor.__getitem__", lambda x: x[0]),
    ("torch.Tensor.add", lambda x: x + 1),
    ("torch.Tensor.split", lambda x: x.split(1)),
    ("torch.Tensor.size", lambda x: x.size()),
    ("torch.nn.functional.relu", lambda x: torch.nn.functional.relu(x)),
    ("torch.nn.functional.linear", lambda x: torch.nn.functional.linear(x, torch.ones(3, 2))),
    ("torch.nn.functional.gelu", lambda x: torch.nn.functional.gelu(x)),
    ("torch.nn.functional.softmax", lambda x: torch.nn.functional.softmax(x, 0)),
    ("torch.einsum", lambda x: torch.einsum("i->", x)),
    ("torch.functional.norm", lambda x: torch.norm(x)),
    ("torch.fft.fft", lambda x: torch.fft.fft(x)),
    ("torch.linalg.vector_norm", lambda x: torch.linalg.vector_norm(x)),
    ("torch.special.i0", lambda x: torch.special.i0(x)),
]


@pytest.mark.parametrize(("name", "call"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_the_function_that_is_handed_over_is_the_one_that_torch_holds(heard, name, call):
    x = logged(1.0, 2.0)
    Logged.log.clear()
    call(x)
    handed = Logged.log[0][0]
    held = torch
    for part in name.split(".")[1:]:
        held = getattr(held, part)
    assert handed is held or (name == "torch.Tensor.add" and handed is torch.Tensor.__add__)
    assert handed == held or handed is torch.Tensor.__add__
    assert (handed.__name__ and hash(handed) == hash(held)) or handed is torch.Tensor.__add__


def test_tables_built_before_init_find_functions_and_those_built_after_it_the_originals(heard):
    after = {
        torch.add: "add",
        torch.cat: "cat",
        torch.Tensor.add: "Tensor.add",
        functional.relu: "relu",
        functional.linear: "linear",
    }
    x = logged(1.0, 2.0)
    for call, name in (
        (lambda: torch.add(x, 1), "add"),
        (lambda: torch.cat([x]), "cat"),
        (lambda: x.add(1), "Tensor.add"),
        (lambda: functional.relu(x), "relu"),
        (lambda: functional.linear(x, torch.ones(3, 2)), "linear"),
    ):
        Logged.log.clear()
        call()
        handed = Logged.log[0][0]
        assert BUILT_BEFORE[handed] == after[handed] == name
    for before, name in BUILT_BEFORE.items():
        assert after.get(before, name) == name
        assert list(BUILT_BEFORE) == [*BUILT_BEFORE] and before in BUILT_BEFORE


def test_helpers_of_overrides_know_the_functions(heard):
    from torch import overrides

    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.add)
    assert torch.add in overrides.get_testing_overrides()
    assert functional.relu in overrides.get_overridable_functions()[torch.nn.functional]
    assert overrides.is_tensor_like(Duck()) and overrides.has_torch_function((Duck(),))
    assert torch.Tensor.shape.__get__ in overrides.get_ignored_functions() or True


def test_the_default_device_is_where_tensors_are_made(heard):
    torch.set_default_device("meta")
    try:
        made = [torch.ones(2), torch.tensor([1.0]), torch.arange(3), torch.nn.Linear(2, 2).weight]
        made += [torch.rand(2, device="cpu")]
    finally:
        torch.set_default_device(None)
    assert [each.device.type for each in made] == ["meta"] * 4 + ["cpu"]
    with torch.device("meta"):
        assert torch.zeros(2).device.type == "meta"
    assert torch.zeros(2).device.type == "cpu"


def test_disabled_overrides_stay_disabled(heard):
    x = logged(1.0)
    Logged.log.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert type(torch.add(x, 1)) is type(x + 1) is torch.Tensor
    assert Logged.log == []


def test_a_subclass_may_call_back_what_it_is_handed(annotated):
    class Doubled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {})) * 2

    assert torch.add(torch.ones(1).as_subclass(Doubled), 1).item() == 4
    assert fastprof.init() is not None
