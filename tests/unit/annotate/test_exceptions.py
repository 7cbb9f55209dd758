"""Exceptions have the same type, message and frames, and leave no range open."""

import signal
import sys
import traceback

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch.nn import functional

import fastprof
from fastprof._core import _layers, _ranges
from support.annotation_modes import TOOL, Tool, listening
from unit.annotate.annotation_outcomes import outcomes

REFUSED = {
    "builtin": lambda x: torch.mm(x, x),
    "method": lambda x: x.mm(x),
    "sign": lambda x: x + torch.ones(7),
    "index": lambda x: x[9],
    "F in Python": lambda x: functional.cross_entropy(x, x.int()),
    "F in C": lambda x: functional.linear(x, x, x, x),
    "module": lambda x: torch.nn.Linear(5, 2)(x),
    "recurrent": lambda x: torch.nn.LSTM(5, 2)(x),
    "linalg": lambda x: torch.linalg.inv(x),
    "conversion": lambda x: bool(x),
    "wrong names": lambda x: functional.relu(x, nothing=1),
    "optimizer": lambda x: torch.optim.SGD([x.requires_grad_()], lr=-1),
    "backward": lambda x: x.requires_grad_().mul(2).backward(),
}


def frames(error):
    """The frames of a traceback below the test's, as (file, function, line)."""
    result = traceback.extract_tb(error.__traceback__)[1:]
    return [(frame.filename, frame.name, frame.lineno) for frame in result]


@pytest.mark.parametrize("title", REFUSED)
def test_exceptions_have_the_same_type_words_and_frames(title):
    def program():
        try:
            REFUSED[title](torch.ones(3))
        except Exception as error:
            ours = [frame for frame in frames(error) if "annotate" in frame[0].split("/")]
            theirs = [frame for frame in frames(error) if "annotate" not in frame[0].split("/")]
            return type(error), str(error), theirs, len(ours) <= (title == "recurrent")
        return "nothing was raised"

    plain, *annotated = outcomes(program)
    assert plain != "nothing was raised" and annotated == [plain] * 3


def test_what_is_raised_within_a_call_is_that_very_object(heard):
    class Refusal(Exception):
        pass

    refusal = Refusal("this one")

    def refuse(gradient):
        raise refusal

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(refuse)
    with pytest.raises(Refusal) as caught:
        torch.sum(y).backward()
    assert caught.value is refusal
    assert torch.add(x, 1).sum().item() == 4


def test_an_exception_that_is_being_handled_stays_so(heard):
    try:
        raise KeyError("first")
    except KeyError as first:
        torch.add(torch.ones(2), 1)
        assert sys.exc_info()[1] is first
        with pytest.raises(RuntimeError) as caught:
            torch.mm(torch.ones(2), torch.ones(2))
        assert caught.value.__context__ is first
    assert sys.exc_info() == (None, None, None)


def test_an_interrupt_within_a_call_reaches_the_program(heard):
    class Interrupting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            signal.raise_signal(signal.SIGINT)
            return x

        @staticmethod
        def backward(ctx, gradient):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        functional.relu(Interrupting.apply(torch.ones(2)))
    assert torch.ones(2).add(1).tolist() == [2, 2]


def test_an_interrupt_while_a_call_is_described_reaches_the_program(heard):
    class Slow(torch.nn.Module):
        def forward(self, x):
            return x

        def extra_repr(self):
            raise KeyboardInterrupt

    fastprof.wrap(Slow, "forward")
    model, x = Slow(), torch.ones(2)
    _layers.enter(model, _ranges.Marker("is anybody there?"))
    if _layers._of_thread.open:
        _layers.leave(model)
        with pytest.raises(KeyboardInterrupt):
            model(x)
    else:
        assert model(x) is x


def test_what_fails_while_a_call_is_described_stays_out_of_the_program(heard):
    class Silent(torch.nn.Module):
        def forward(self, x):
            return x + 1

        def extra_repr(self):
            raise ValueError("nothing to say")

    fastprof.wrap(Silent, "forward")
    assert Silent()(torch.ones(2)).tolist() == [2, 2]


def test_a_broken_tool_stays_out_of_the_program(annotated, monkeypatch):
    def broken(self, *args):
        raise ValueError("broken")

    for name in ("push_range", "pop_range", "get_event_attributes"):
        with monkeypatch.context() as patched:
            patched.setattr(Tool, name, broken)
            with listening(TOOL):
                with fastprof.layer("named"):
                    assert torch.add(torch.ones(1), 1).item() == 2
                with pytest.raises(RuntimeError, match="must be a matrix"):
                    torch.mm(torch.ones(1), torch.ones(1))


def test_lists_that_hold_themselves_are_refused_by_torch(heard):
    endless = [1.0]
    endless.append(endless)
    alone = []
    alone.append(alone)
    for each in (endless, alone):
        with pytest.raises((ValueError, TypeError)):
            torch.tensor(each)
        with pytest.raises(TypeError):
            torch.cat(each)


def test_endless_recursion_is_an_error_and_closes_its_ranges(heard):
    class Endless(torch.nn.Module):
        def forward(self, x):
            return self(functional.relu(x))

    fastprof.wrap(Endless, "forward")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            Endless()(torch.ones(1))
    finally:
        sys.setrecursionlimit(limit)
    assert torch.ones(2).add(1).tolist() == [2, 2]


def test_generators_that_are_left_close_their_ranges(heard):
    @fastprof.layer("batches")
    def batch(n):
        if n == 2:
            raise StopIteration
        return torch.full((2,), n)

    with pytest.raises(StopIteration):
        [batch(n) for n in range(5)]
    assert torch.ones(1).item() == 1
