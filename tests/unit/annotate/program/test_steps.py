"""Which steps `fastprof run` records, and that nothing of it is left afterwards."""

import os
import random
import signal

import pytest

from support import torch_server
from support.hypothesis_profiles import IS_FULL

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

# Writes the state of torch.profiler within each step: NONE without a profiler.
STATES = """
import gc, sys, torch
profilers = []
init = torch.profiler.profile.__init__
def noted(self, *arguments, **options):
    profilers.append(self)
    init(self, *arguments, **options)
torch.profiler.profile.__init__ = noted
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for i in range(10):
    net(torch.randn(4, 8)).sum().backward()
    if profilers and profilers[-1].profiler is not None:
        print(i, profilers[-1].current_action.name, torch.autograd._profiler_enabled())
    optimizer.step()
"""
GRID = [(1, 2), (1, 4), (2, 3), (2, 6), (3, 4), (5, 8)]


@pytest.mark.parametrize(("first", "last"), GRID if IS_FULL else GRID[:2] + GRID[3:4])
def test_exactly_the_steps_asked_for_are_recorded(record, first, last):
    recording = record(STATES, first=first, last=last)
    n_steps = last - first
    assert [(each["first"], each["n_steps"]) for each in recording.recordings] == [(first, n_steps)]
    assert recording.steps == [f"ProfilerStep#{step}" for step in range(first, last)]
    assert recording.counts[0]["Optimizer.step#SGD.step"] == n_steps
    assert recording.counts[0]["aten::addmm"] == n_steps
    states = [line.split()[:2] for line in recording.done.stdout.splitlines()]
    assert [step for step, state in states if state == "RECORD"][:n_steps] == [
        str(step) for step in range(first, last)
    ]
    warm = [step for step, state in states if state == "WARMUP"]
    assert warm == ([str(first - 1)] if first > 1 else [])  # step 0 has no begin


def test_calls_are_recorded_from_the_step_asked_for(record):
    recording = record(
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(8, 8)).eval()
        with torch.no_grad():
            for i in range(8):
                net(torch.randn(4, 8))
        """,
        first=2,
        last=5,
    )
    assert recording.steps == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert recording.counts[0]["aten::addmm"] == 3


LEFT = """
import atexit, signal, threading
import torch
import fastprof
before = {name: value for name, value in vars(torch.nn.functional).items()}
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(net.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
def is_ours(value):
    return type(value).__module__.startswith("fastprof")
def all_ours():
    owners = [torch, torch.nn.functional, torch.Tensor, torch._C._TensorBase, torch.nn.Module,
              torch.optim.Optimizer, torch.optim.AdamW, torch.optim.SGD, torch.profiler.profile,
              torch.autograd.profiler.profile, torch.autograd.profiler.emit_nvtx, torch.jit]
    return [f"{owner}.{name}" for owner in owners for name, value in vars(owner).items()
            if is_ours(value)]
for i in range(9):
    if i == 1:
        assert all_ours()
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
assert not all_ours(), all_ours()
for module in net.modules():
    assert not any(hooks for name, hooks in vars(module).items() if name.endswith("_hooks"))
from torch.optim import optimizer as optimizers
assert not optimizers._global_optimizer_post_hooks and not optimizers._global_optimizer_pre_hooks
assert type(torch.optim.AdamW.step).__name__ == "function"
assert torch.optim.AdamW.step.hooked
assert isinstance(vars(torch.optim.Optimizer)["profile_hook_step"], staticmethod)
assert not is_ours(torch.optim.Optimizer.profile_hook_step)
assert torch.optim.Optimizer.profile_hook_step.__module__ == "torch.optim.optimizer"
assert not torch.nn.modules.module._global_forward_hooks
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert threading.active_count() == 1
"""


def test_nothing_is_left_after_the_last_recorded_step(record):
    assert [recording["n_steps"] for recording in record(LEFT).recordings] == [2]


def test_nothing_is_left_though_picklers_were_defined_meanwhile(record):
    # torch.profiler imports modules that define some, in a program that has not imported them yet.
    define = """
    if i == 1:
        import pickle
        class Own(pickle.Pickler):
            def reducer_override(self, value):
                return NotImplemented
        own = vars(Own)["reducer_override"]
"""
    source = LEFT.replace("for i in range(9):\n", f"for i in range(9):{define}")
    recording = record(source + "assert vars(Own)['reducer_override'] is not own")
    assert [each["n_steps"] for each in recording.recordings] == [2]


COUNTED = """
import copy, cloudpickle, dill, torch
from fastprof.annotate.program.modules import Outermost
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
    def forward(self, x):
        if x is None:
            raise KeyError("forward")
        return self.body(x).relu()
calls = []
def n_counted(function, *arguments):
    n_calls = len(calls)
    function(*arguments)
    return len(calls) - n_calls
outermost = Outermost(calls.append)
outermost.look()
net, x = Net().eval(), torch.randn(2, 4)
plain = net(x)
assert len(calls) == 1 and n_counted(net, x) == 1 and torch.equal(net(x), plain)
assert "_compiled_call_impl" in vars(Net) and "_compiled_call_impl" not in vars(net)
assert not net._forward_hooks and Net._compiled_call_impl is None
try:
    net(None)
except KeyError:
    assert len(calls) == 4  # the call that raised too
# Others, copies and replicas of it have nothing of it; classes can be pickled by value.
assert Net()._compiled_call_impl is None and copy.deepcopy(net)._compiled_call_impl is None
replica = net._replicate_for_data_parallel()
replica._modules["body"] = torch.nn.Identity()
assert torch.equal(replica(x), x.relu())
# cloudpickle assigns the attributes again to a class that exists: to None here.
class Pickled(torch.nn.Linear):
    pass
pickled = Pickled(4, 4)
plain_of_pickled = pickled(x)
for pickles in (cloudpickle, dill):
    again = pickles.loads(pickles.dumps(pickled))
    own = vars(type(again)).get("_compiled_call_impl")  # before a call, which is counted too
    assert type(again) is Pickled or own is None
    assert torch.equal(again(x), plain_of_pickled)
# torch.compile traces through it, also with hooks.
net.register_forward_hook(lambda *_: None)
assert torch.equal(torch.compile(net, backend="eager", fullgraph=True)(x), plain)
function = torch.compile(lambda x: net(x), backend="eager", fullgraph=True)
assert torch.equal(function(x), plain)
net.compile(backend="eager")
assert net._compiled_call_impl is not None and n_counted(net, x) == 1
compiled = vars(net)["_compiled_call_impl"]
outermost.close()
assert net._compiled_call_impl is compiled and "_compiled_call_impl" not in vars(Net)
assert n_counted(net, x) == 0 and torch.equal(net(x), plain)
"""


def test_a_module_whose_calls_are_counted_is_as_without_us(tmp_path):
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    pytest.importorskip("dill", reason="dill is not installed")
    torch_server.run_source(COUNTED, tmp_path)


def test_compiled_code_is_not_compiled_again_after_the_recording(record):
    recording = record(
        """
        import torch
        import torch.nn.functional as F
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Linear(8, 8)
            def forward(self, x):
                return F.relu(torch.matmul(self.body(x), x)).sum()
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        compiled = torch.compile(net, backend="eager")
        for i in range(9):
            compiled(torch.randn(8, 8)).backward()
            optimizer.step()
        import torch._dynamo.utils
        frames = torch._dynamo.utils.counters["frames"]
        assert frames["ok"] == frames["total"] == 1, frames
        """
    )
    assert recording.recordings


def test_a_program_that_annotates_itself_stays_annotated(record):
    record(
        LEFT.split("def is_ours")[0]
        + """
fastprof.init()
wrapped = torch.nn.functional.linear
for i in range(9):
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
assert torch.nn.functional.linear is wrapped and "fastprof" in type(wrapped).__module__
"""
    )


ENDED = """
for i in range(30):
    step()
    if i == 6:
        {ending}
"""


IGNORED = pytest.mark.skipif(
    signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="SIGHUP is ignored, as by nohup"
)


@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=IGNORED)])
def test_a_signal_that_ends_the_program_keeps_the_recording(record_steps, name):
    ending = f"os.kill(os.getpid(), signal.{name})"
    recorded_steps = record_steps(ENDED.format(ending=ending), code=-getattr(signal, name), last=20)
    assert [
        (recording["first"], recording["n_steps"]) for recording in recorded_steps.recordings
    ] == [(3, 4)]
    assert recorded_steps.counts[0]["aten::addmm"] == 4 and recorded_steps.report["is_over"]
    assert not recorded_steps.done.stderr


def test_an_interrupted_program_keeps_the_recording(record_steps):
    ending = "os.kill(os.getpid(), signal.SIGINT)"
    recorded_steps = record_steps(ENDED.format(ending=ending), code=-signal.SIGINT, last=20)
    assert [recording["n_steps"] for recording in recorded_steps.recordings] == [4]
    assert recorded_steps.done.stderr.splitlines()[-1] == "KeyboardInterrupt"


INTERRUPTED = """
class Late(Exception):
    pass
def late(*_):
    raise Late
signal.signal(signal.SIGALRM, late)
export = torch.profiler.profile.export_chrome_trace
def interrupted(self, path):
    os.kill(os.getpid(), signal.{name})
    export(self, path)
torch.profiler.profile.export_chrome_trace = interrupted
try:
    for i in range(9):
        step()
except (KeyboardInterrupt, Late) as error:
    print(type(error).__name__, "in step", i)
assert signal.getsignal(signal.SIGALRM) is late
"""


@pytest.mark.parametrize(("name", "error"), [("SIGINT", "KeyboardInterrupt"), ("SIGALRM", "Late")])
def test_a_signal_while_a_trace_is_saved_reaches_the_program_afterwards(record_steps, name, error):
    """Also by the program's own handler, whose errors reach it."""
    recorded_steps = record_steps(INTERRUPTED.format(name=name))
    assert recorded_steps.done.stdout == f"{error} in step 4\n"
    assert [recording["n_steps"] for recording in recorded_steps.recordings] == [2]


def test_a_recording_stops_at_its_limit_of_memory(record_steps):
    recorded_steps = record_steps(
        """
        kept = []
        for i in range(12):
            kept.append(bytearray(4 << 20))  # as the profiler's events
            step()
        """,
        last=11,
        max_memory=14 << 20,
    )
    (recording,) = recorded_steps.recordings
    assert 2 <= recording["n_steps"] <= 5 and recording["is_stopped"]
    assert recorded_steps.counts[0]["aten::addmm"] == recording["n_steps"]
    (note,) = recorded_steps.report["notes"]
    assert note.startswith(f"recorded {recording['n_steps']} of 8 steps: the process has grown by")


def test_a_process_that_leaves_early_is_told_apart(record):
    recording = record("import os, torch\nos._exit(0)\n")
    assert not recording.report["is_over"] and os.path.isdir(os.path.dirname(__file__))


class Object:
    """Something that a program calls."""


@pytest.mark.parametrize("n_objects", [1, 2, 3, 9])
def test_steps_counted_in_c_are_those_counted_in_python(n_objects):
    from torch._C._dynamo.eval_frame import set_eval_frame

    from fastprof._core._around import Around
    from fastprof._core._countdown import Countdown
    from fastprof.annotate.program.steps import RepeatedCall

    generator, far = random.Random(n_objects), 1 << 62
    objects = [Object() for _ in range(n_objects)]
    calls = [generator.choice(objects) for _ in range(500)]
    alone = RepeatedCall(lambda: None)
    expected = sum(alone.called(call) for call in calls)
    ends, n_ended, told = [], 0, []
    countdown, repeated = Countdown(ends.append), RepeatedCall(lambda: None)

    def ended(each):
        nonlocal n_ended
        told.append(each)
        n_steps, n_calls = countdown.stop()
        repeated.counted(n_calls)
        n_ended += n_steps + repeated.called(each)
        countdown.start(*repeated.calls, generator.randrange(9), far)

    function = Around(lambda each: each, "a:b", None, ended, set_eval_frame, countdown)
    assert all(function(call) is call for call in calls)
    n_steps, n_calls = countdown.stop()
    repeated.counted(n_calls)
    assert n_ended + n_steps == expected
    assert (len(told) < 300) == (n_objects < 9)  # of more objects, Python counts
    assert repeated.calls == alone.calls
    countdown.is_off = True
    assert function(objects[0]) is objects[0] and countdown.stop() == (0, [])
