"""Layers of interleaved tasks and generators: each runs in its own layers only."""

import ast
import asyncio
import collections
import contextvars
import gc
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

from torch import nn

import fastprof
from fastprof import AnnotateError
from fastprof._core import _layers, _ranges
from fastprof.annotate import text as channels
from support.annotation_modes import PROFILER, TOOL, listening
from support.waiting import in_threads

X = torch.ones(2, 4)


class Nested:
    """Replaces the nvtx package's domain; records the ranges open around each range."""

    def __init__(self):
        self.of_threads = collections.defaultdict(list)
        self.seen = []

    def get_event_attributes(self, message):
        return message

    def push_range(self, message):
        around = self.of_threads[threading.get_ident()]
        around.append(message)
        if message.startswith("{'mod'"):
            told = [each.removeprefix("layer:") for each in around if each.startswith("layer:")]
            self.seen.append((op_of(message), told))

    def pop_range(self):
        self.of_threads[threading.get_ident()].pop()


def op_of(message):
    return ast.literal_eval(message).get("op")


@pytest.fixture
def tool(monkeypatch, annotated):
    """An attached tool; checks that no range remains open."""
    tool = Nested()
    rest = (vars(torch.autograd.profiler), channels._is_recording, channels._recorder())
    _ranges.connect(tool, *rest, channels.recordable)
    yield tool
    channels._connected = False
    channels.connect()
    assert not any(tool.of_threads.values()) and _layers._of_thread.open == []


def layers_of(tool, op):
    """The layers around each torch call."""
    return [layers for called, layers in tool.seen if called == op]


def test_tasks_that_take_turns_are_in_their_own_layers(tool):
    async def task(name, function):
        with fastprof.layer(name):
            function(X)
            await asyncio.sleep(0)
            function(X)
            with fastprof.layer("inner"):
                await asyncio.sleep(0)
                function(X)
            await asyncio.sleep(0)
            function(X)

    async def program():
        with fastprof.layer("all"):
            await asyncio.gather(task("a", torch.relu), task("b", torch.sigmoid))

    asyncio.run(program())
    for op, name in (("relu", "a"), ("sigmoid", "b")):
        around = ["all", name]
        assert layers_of(tool, op) == [around, around, [*around, "inner"], around], op


def test_a_task_that_outlives_the_layer_it_was_made_in_is_out_of_it(tool):
    async def task():
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        torch.relu(X)

    async def program():
        with fastprof.layer("maker"):
            made = asyncio.create_task(task())
            await asyncio.sleep(0)
            torch.sigmoid(X)
        await made

    asyncio.run(program())
    assert layers_of(tool, "sigmoid") == [["maker"]] and layers_of(tool, "relu") == [[]]


def test_modules_in_tasks_keep_their_names(tool):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    async def run(net):
        net.first(X)
        await asyncio.sleep(0)
        net.second(X)

    async def program():
        await asyncio.gather(run(one), run(other))

    one, other = Two(), Two()
    with fastprof.annotate_layers(one, "one"), fastprof.annotate_layers(other, "other"):
        asyncio.run(program())
    names = [["one.first"], ["other.first"], ["one.second"], ["other.second"]]
    assert layers_of(tool, "linear") == names


def test_generators_that_take_turns_leave_only_their_own(tool):
    def values(name, function):
        with fastprof.layer(name):
            function(X)
            yield
            function(X)
            yield
        function(X)

    first, second = values("first", torch.relu), values("second", torch.sigmoid)
    for _ in range(2):
        next(first)
        next(second)
    with fastprof.layer("own"):
        torch.tanh(X)
        next(first, None)
        torch.tanh(X)
    next(second, None)
    torch.tanh(X)
    # A generator shares its caller's context, so its layers enclose the caller's work in between.
    assert layers_of(tool, "relu")[0] == ["first"]
    assert layers_of(tool, "tanh") == [["first", "second", "own"], ["second", "own"], []]
    assert layers_of(tool, "sigmoid")[-1] == []


def test_what_a_generator_entered_within_a_call_ends_with_it(tool):
    class Source:
        def pull(self):
            return next(self.values)

    def values():
        with fastprof.layer("pulled"):
            yield torch.relu(X)
            yield torch.relu(X)

    source = Source()
    source.values = values()
    fastprof.wrap(source, "pull")
    with fastprof.layer("around"):
        source.pull()
        torch.tanh(X)
        source.pull()
        source.values.close()
        torch.tanh(X)
    assert layers_of(tool, "tanh") == [["around", "pulled"], ["around"]]
    assert layers_of(tool, "relu") == [["around", "pulled"]] * 2


def test_a_block_that_is_left_in_another_context_is_left(tool):
    block = fastprof.layer("block")
    contextvars.copy_context().run(block.__enter__)
    contextvars.copy_context().run(block.__exit__, None, None, None)
    torch.relu(X)
    assert layers_of(tool, "relu") == [[]]


def test_a_thread_of_a_task_has_no_layers_of_the_task(tool):
    async def program():
        with fastprof.layer("task"):
            await asyncio.to_thread(torch.relu, X)

    asyncio.run(program())
    assert layers_of(tool, "relu") == [[]]


def test_a_decorated_coroutine_is_in_its_layer_until_it_returns(tool):
    @fastprof.layer("decorated")
    async def function(again=True):
        torch.relu(X)
        await asyncio.sleep(0)
        torch.relu(X)
        return await function(False) if again else 3

    assert asyncio.run(function()) == 3
    one, two = ["decorated"], ["decorated", "decorated"]
    assert layers_of(tool, "relu") == [one, one, two, two]
    assert asyncio.iscoroutinefunction(function) and function.__name__ == "function"


def test_a_generator_is_not_decorated():
    def values():
        yield 1

    async def later():
        yield 1

    for function in (values, later):
        with pytest.raises(AnnotateError, match="is a generator"):
            fastprof.layer("x")(function)


def test_an_interrupt_leaves_no_layer_behind(tool):
    class Interrupted(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    net = nn.Sequential(nn.ReLU(), Interrupted())
    with fastprof.annotate_layers(net, "net"):
        with fastprof.layer("block"), pytest.raises(KeyboardInterrupt):
            net(X)
        torch.tanh(X)
    assert layers_of(tool, "tanh") == [[]]


def test_a_layer_keeps_no_model_in_a_context_that_outlives_it(tool):
    kept = []

    class Keeps(nn.Module):
        def forward(self, x):
            kept.append(contextvars.copy_context())
            return x

    net = nn.Sequential(Keeps())
    gone = weakref.ref(net[0])
    with fastprof.annotate_layers(net):
        net(X)
    del net
    gc.collect()
    assert gone() is None and kept


@pytest.mark.parametrize("mode", [TOOL, PROFILER])
def test_many_tasks_in_threads_nest(annotated, mode):
    async def task(name, turns):
        for turn in range(turns):
            with fastprof.layer(f"{name}.{turn}"):
                torch.relu(X)
                await asyncio.sleep(0)
                torch.relu(X)

    async def program():
        await asyncio.gather(*(task(f"task{i}", 1 + i % 3) for i in range(8)))

    def work():
        asyncio.run(program())

    with listening(mode) as heard:
        work()
        if mode == PROFILER:
            in_threads(*[work] * 3)
    assert heard.is_nested() and _layers._of_thread.open == []
    assert any("layer:task7.0" in text for text in heard.texts())
