"""Operators called by torch.ops, and functions of torch.sparse: their markers only."""

import ast

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

import fastprof
from fastprof import ops
from fastprof.model.call import Arg, Call, Tensor
from support.annotation_modes import PROFILER, TOOL, listening
from unit.annotate.annotation_outcomes import outcomes

X = torch.arange(9.0).reshape(3, 3)


@pytest.fixture(scope="module")
def twice():
    @torch.library.custom_op("fastprof_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.clone().mul_(2)

    return twice


def calls(heard):
    """mod, op and number of arguments of the markers."""
    markers = [ast.literal_eval(text) for text in heard.texts()]
    return [
        (marker["mod"], marker["op"], len(marker["args"])) for marker in markers if "args" in marker
    ]


@pytest.mark.parametrize("mode", [TOOL, PROFILER])
def test_operators_have_markers_with_their_own_names(annotated, twice, mode):
    with listening(mode) as heard:
        torch.ops.aten.add(X, X, alpha=2)
        torch.ops.aten.mm.default(X, X)
        torch.ops.fastprof_test.twice(X)
        twice(X)
    told = [call for call in calls(heard) if call[0].startswith("torch.ops")]
    one = ("torch.ops.fastprof_test", "twice", 1)
    assert told == [("torch.ops.aten", "add", 3), ("torch.ops.aten", "mm", 2), one, one]
    assert heard.is_nested()


@pytest.mark.parametrize("mode", [TOOL, PROFILER])
def test_what_launches_nothing_and_ranges_of_torch_have_none(annotated, mode):
    with listening(mode) as heard:
        torch.ops.aten.size(X, 0)
        with torch.profiler.record_function("of torch"):
            pass
    assert calls(heard) == [] and heard.is_nested()


def test_functions_of_sparse_have_markers(annotated):
    eye = torch.eye(3).to_sparse()
    with listening(TOOL) as heard:
        torch.sparse.mm(eye, X)
        torch.sparse.addmm(X, eye, X)
        torch.sparse.softmax(eye, 1)
        torch.sparse.sum(eye)
    result = [call for call in calls(heard) if call[0] == "torch.sparse"]
    names = [("mm", 2), ("addmm", 3), ("softmax", 2), ("sum", 1)]
    assert result == [("torch.sparse", *name) for name in names]


def test_the_cost_of_an_operator_is_that_of_its_aten_call():
    def work(mod, op):
        tensor = Tensor((3, 3), "float32")
        return ops.work(Call(mod, op, (Arg("", tensor), Arg("", tensor))), "fprop")

    assert work("torch.ops.aten", "mm") == work("aten", "mm") is not None
    assert work("torch.ops.no_such", "mm") is None


def test_results_errors_and_overrides_are_the_same(twice):
    class Logged(torch.Tensor):
        log: list = []  # noqa: RUF012

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Logged.log.append((str(func), type(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    def program():
        Logged.log.clear()
        leaf = X.clone().requires_grad_()
        torch.ops.aten.mul.Tensor(leaf, X).sum().backward()
        found = [leaf.grad, torch.ops.aten.add(X, 1), torch.ops.aten.mm.out(X, X, out=X.clone())]
        found += [twice(X), torch.sparse.mm(X.to_sparse(), X), torch.ops.aten.add(self=X, other=X)]
        found.append(torch.ops.aten.add(X.as_subclass(Logged), X))
        for wrong in (lambda: torch.ops.aten.mm(X), lambda: torch.ops.aten.mm.default(X, X[0])):
            try:
                wrong()
            except (RuntimeError, TypeError) as error:
                found.append((type(error), str(error)))
        return found, list(Logged.log)

    plain, *annotated = outcomes(program)
    assert annotated == [plain] * 3


def test_operators_are_what_they_were_after_uninit():
    before = torch._ops.OpOverload.__call__, torch._ops.OpOverloadPacket.__call__
    with fastprof.init():
        assert torch._ops.OpOverload.__call__ == before[0]
        assert torch._ops.OpOverload.__call__ is not before[0]
    assert (torch._ops.OpOverload.__call__, torch._ops.OpOverloadPacket.__call__) == before
    assert torch._ops.OpOverload.__call__ is before[0]


def test_reading_a_tensor_of_the_cpu_has_no_marker(annotated):
    value = torch.tensor(2.0)
    with listening(TOOL) as heard:
        assert (value.item(), float(value), bool(value), value.tolist()) == (2.0, 2.0, True, 2.0)
    assert calls(heard) == []
