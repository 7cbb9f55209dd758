"""fastprof.wrap: user functions of every kind keep their properties."""

import copy
import inspect
import math
import pickle
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

import fastprof
from fastprof import AnnotateError
from fastprof._core._hooks import Wrapped
from support.annotation_modes import TOOL, listening


class Foo(torch.nn.Module):
    """A module with an extra_repr."""

    def __init__(self, size=3):
        super().__init__()
        self.size = size

    def forward(self, x, *, scale=2):
        """Scales."""
        return x * scale

    def extra_repr(self):
        return f"size={self.size}"


class Methods:
    calls = 0

    def plain(self, a, b=1, *rest, c=2, **more):
        """Plain."""
        return self, a, b, rest, c, more

    @staticmethod
    def static(a, b=1):
        return a, b

    @classmethod
    def by_class(cls, a):
        return cls, a

    @property
    def asked(self):
        return 1

    def generator(self):
        yield 1

    async def later(self):
        return 1

    def where(self):
        return inspect.currentframe().f_back.f_code.co_name


class Below(Methods):
    def plain(self, a):
        return "below", super().plain(a)


@pytest.fixture(autouse=True)
def unwrapped():
    yield
    fastprof.uninit()


def ops(heard):
    return [text for text in heard.texts() if text.startswith("{'mod'")]


def test_methods_of_all_kinds_return_the_same(heard):
    one = Methods()
    before = inspect.signature(Methods.plain), Methods.plain.__doc__, Methods.plain.__qualname__
    for name in ("plain", "static", "by_class", "generator", "later", "where"):
        fastprof.wrap(Methods, name)
    assert one.plain(1, 2, 3, c=4, d=5) == (one, 1, 2, (3,), 4, {"d": 5})
    assert Methods.plain(one, 1) == (one, 1, 1, (), 2, {})
    assert Methods.static(1) == one.static(1) == (1, 1)
    assert Methods.by_class(1) == one.by_class(1) == (Methods, 1) and Below.by_class(1)[0] is Below
    assert Below().plain(7)[0] == "below" and Below().plain(7)[1][1] == 7
    assert list(one.generator()) == [1]
    assert isinstance(vars(Methods)["static"], staticmethod)
    assert isinstance(vars(Methods)["by_class"], classmethod)
    assert (
        inspect.signature(Methods.plain),
        Methods.plain.__doc__,
        Methods.plain.__qualname__,
    ) == before
    assert inspect.isfunction(Methods.plain) and inspect.ismethod(one.plain)
    assert inspect.isgeneratorfunction(Methods.generator)
    assert inspect.iscoroutinefunction(Methods.later)
    one.later().close()


def test_a_wrapped_function_is_called_from_where_it_was(heard):
    fastprof.wrap(Methods, "where")
    caller = Methods().where()
    assert caller == "test_a_wrapped_function_is_called_from_where_it_was"


def test_a_modules_forward_has_a_module_marker_and_an_argument_marker():
    fastprof.init()
    fastprof.wrap(Foo, "forward")
    model, x = Foo(), torch.ones(2)
    with listening(TOOL) as heard:
        assert model(x, scale=3).tolist() == [3, 3]
    assert heard.texts()[1] == "{'mod': 'Foo', 'strRepr': 'size=3'}"
    assert ops(heard)[1].startswith("{'mod': 'Foo', 'op': 'forward', 'args': [")
    assert heard.is_nested()


def test_forward_of_one_module_is_its_own():
    fastprof.init()
    model, other = Foo(), Foo(4)
    fastprof.wrap(model, "forward")
    with listening(TOOL) as heard:
        model(torch.ones(1)), other(torch.ones(1))
    assert [text for text in heard.texts() if "strRepr" in text] == [
        "{'mod': 'Foo', 'strRepr': 'size=3'}"
    ]
    copied = copy.deepcopy(model)
    copied.size = 9
    assert copied.forward.__self__ is copied
    with listening(TOOL) as heard:
        copied(torch.ones(1))
    assert [text for text in heard.texts() if "strRepr" in text] == [
        "{'mod': 'Foo', 'strRepr': 'size=9'}"
    ]
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.forward.__self__ is loaded and loaded(torch.ones(1)).item() == 2
    fastprof.uninit()
    assert "forward" not in vars(model) and model.forward.__func__ is Foo.forward


def test_functions_of_modules_and_builtins_of_extensions():
    fastprof.init()
    extension = types.ModuleType("extension")
    extension.hypot, extension.__doc__ = math.hypot, "Stands for a module in C."
    fastprof.wrap(extension, "hypot")
    with listening(TOOL) as heard:
        assert extension.hypot(3.0, 4.0) == 5
    assert ops(heard) == [
        "{'mod': 'extension', 'op': 'hypot', 'args': [{'name': '', 'type': 'float', 'value': 3.0},"
        " {'name': '', 'type': 'float', 'value': 4.0}]}"
    ]
    with pytest.raises(TypeError, match="must be real number"):
        extension.hypot("3")
    fastprof.uninit()
    assert extension.hypot is math.hypot


def test_wrapped_twice_is_wrapped_once():
    fastprof.init()
    for _ in range(2):
        fastprof.wrap(Methods, "plain")
        fastprof.wrap(Methods, "static")
        fastprof.wrap(torch, "add")
    assert not isinstance(Methods.plain.__wrapped__, Wrapped)
    with listening(TOOL) as heard:
        Methods.static(1)
        Methods().plain(1)
    assert len(ops(heard)) == 2


def test_what_is_inherited_is_wrapped_where_it_is_asked_for():
    plain = Methods.static
    fastprof.wrap(Below, "static")
    assert "static" in vars(Below) and Methods.static is plain
    fastprof.uninit()
    assert "static" not in vars(Below)


@pytest.mark.parametrize(
    ("obj", "name", "words"),
    [
        (Methods, "nothing", "Methods has no attribute 'nothing'"),
        (Methods, "asked", "Methods.asked is a property, not a function or method"),
        (Methods, "calls", "Methods.calls is a int, not a function or method"),
        (torch.nn, "Module", "torch.nn.Module is a type, not a function or method"),
        (dict, "get", "dict.get cannot be replaced"),
        (3, "bit_length", "int.bit_length cannot be replaced"),
        (math, "pi", "math.pi is a float, not a function or method"),
    ],
)
def test_what_cannot_be_wrapped_is_an_error_that_says_why(obj, name, words):
    with pytest.raises(AnnotateError, match=words):
        fastprof.wrap(obj, name)


def test_a_class_method_in_c_keeps_its_class(heard):
    class Own(dict):
        pass

    class Further(Own):
        pass

    fastprof.wrap(Own, "fromkeys")
    made = Own.fromkeys(["a"], 1)
    assert type(made) is Own and made == {"a": 1}
    assert type(Further.fromkeys([])) is Further
    fastprof.uninit()
    assert "fromkeys" not in vars(Own)


def test_functions_of_autograd_by_all_their_ways_to_be_written(heard):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor, None

    class Square(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 2 * x

    for function in (Scale, Square):
        for name in ("forward", "backward"):
            fastprof.wrap(function, name)
    fastprof.wrap(Square, "setup_context")
    fastprof.wrap(Scale, "apply")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(Square.apply(Scale.apply(x, 3)).sum(), x, create_graph=True)
    assert gradient.tolist() == [18, 36]
    assert torch.autograd.grad(gradient.sum(), x)[0].tolist() == [18, 18]
    assert torch.func.grad(lambda x: Square.apply(x).sum())(x).tolist() == [2, 4]
    assert torch.func.vmap(Square.apply)(x).tolist() == [1, 4]
    assert torch.autograd.gradcheck(Square.apply, (x.detach().double().requires_grad_(),))


def test_models_with_wrapped_classes_are_copied_pickled_and_saved(tmp_path):
    fastprof.wrap(Foo, "forward")
    model = torch.nn.Sequential(Foo(5))
    torch.save(model, tmp_path / "model.pt")
    for each in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(tmp_path / "model.pt", weights_only=False),
    ):
        assert each[0].size == 5 and each(torch.ones(1)).item() == 2
    assert pickle.loads(pickle.dumps(Methods.plain)) is Methods.plain
    fastprof.wrap(Methods, "plain")
    assert pickle.loads(pickle.dumps(Methods.plain)) is Methods.plain


def test_types_of_typing_in_modules_of_torch_are_no_functions_of_it():
    from fastprof.annotate.table import functions

    # torch.nn.functional of torch 2.3 has List, Optional, Tuple and Union, which its code uses.
    assert not [
        function
        for function in functions()
        if getattr(function.function, "__module__", 0) == "typing"
    ]
    fastprof.init()
    assert torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), (2, 2)).shape[-1] == 2
