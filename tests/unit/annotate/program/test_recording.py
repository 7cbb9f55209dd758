"""Inside a program of `fastprof run`: its steps and layers are recorded, and it sees no change."""

import gzip
import json
import os
import textwrap

import pytest

from fastprof.runs.collect import collect

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytest.importorskip("nvtx", reason="nvtx is not installed: pip install nvtx")

TRAINING = """
import torch
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 8)
        self.shared = self.a
    def forward(self, x):
        return self.shared(self.a(x).relu())
net = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(8, 2))
loss = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(net.parameters())
for i in range(9):
    loss(net(torch.randn(4, 8)), torch.tensor([0, 1, 0, 1])).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_training_steps_are_recorded_with_all_layers(record):
    recording = record(TRAINING)
    assert recording.report["steps"] == 5 and recording.report["by"] == "optimizer"
    assert recording.steps == ["ProfilerStep#3", "ProfilerStep#4"]
    assert [(each["first"], each["n_steps"]) for each in recording.recordings] == [(3, 2)]
    # Names are those of named_modules(); a shared module has one, and is called twice a block.
    assert recording.layers == {
        "0": 2,
        "0.a": 4,
        "1": 2,
        "1.a": 4,
        "2": 2,
        "CrossEntropyLoss": 2,
    }
    assert recording.counts[0]["Optimizer.step#AdamW.step"] == 2


@pytest.mark.parametrize("action", ["always", "error"])
def test_warnings_of_torchs_profiler_are_none_of_the_program(record, action):
    """torch up to 2.11 warns when a profiler starts, also the first."""
    source = f"""
        import warnings
        from torch.profiler import profiler
        prepare = profiler.profile.prepare_trace
        def prepare_trace(self):
            profiler.warn("Profiler clears events at the end of each cycle.", stacklevel=2)
            prepare(self)
        profiler.profile.prepare_trace = prepare_trace
        warnings.simplefilter("{action}")
    """
    recording = record(textwrap.dedent(source) + TRAINING)
    assert recording.steps == ["ProfilerStep#3", "ProfilerStep#4"]
    assert recording.done.stderr == ""


# A machine with a GPU that the program has not used. `asked`: what our code asks torch.cuda.
GPU = """
import sys, torch
from fastprof._system import nvidia
asked, answers = [], {"is_available": True, "device_count": 1, "current_device": 0}
def is_ours(frame):
    while frame is not None and "/fastprof/annotate/" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None
def counted(name, function):
    def call(*arguments, **options):
        if not is_ours(sys._getframe(1)):
            return function(*arguments, **options)
        asked.append(name)
        return answers.get(name)
    return call
for name in [*answers, "init", "_lazy_init", "synchronize", "get_device_properties",
             "get_device_name", "memory_reserved", "mem_get_info", "is_current_stream_capturing"]:
    setattr(torch.cuda, name, counted(name, getattr(torch.cuda, name)))
nvidia._DEVICES = ("/",)
torch.version.cuda = "13.0"
"""


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"when": "step > 0.1ms", "first": 1, "last": 2},
        {"when": "memory > 1%"},
        {"step": "call"},
    ],
)
def test_cuda_stays_uninitialised_in_a_program_that_does_not_use_it(record, settings):
    """To ask for GPUs initialises CUDA's driver, and processes forked later cannot use it."""
    ends = "import time, fastprof\nwith fastprof.timer('block'):\n    time.sleep(0.01)\n"
    ends += "fastprof.timings()\nprint(*asked)\n"
    recording = record(TRAINING.replace("range(9)", "range(40)") + ends, begin=GPU, **settings)
    assert recording.done.stdout == "\n"
    assert recording.report["problem"] is None
    assert len(recording.recordings) == ("memory" not in settings.get("when", ""))


def test_the_user_hears_of_gpus_that_are_first_used_while_recorded(record):
    source = TRAINING.replace("for i in range(9):", "for i in range(9):\n    use_gpu(i == 3)")
    use = "def use_gpu(now):\n    if now: torch.cuda.is_initialized = lambda: True\n"
    clean = "torch.cuda.get_device_name = lambda number: 'GPU'\n"
    recording = record(GPU + use + clean + source)
    (note,) = recording.report["notes"]
    assert note.startswith("the program began to use a GPU while it was recorded")


def test_a_step_is_from_optimizer_step_to_optimizer_step(record):
    recording = record(TRAINING)
    with open(recording.recordings[0]["path"]) as file:
        events = json.load(file)["traceEvents"]
    steps = [event for event in events if str(event.get("name")).startswith("ProfilerStep#")]
    inside = [event for event in events if event.get("name") == "Optimizer.step#AdamW.step"]
    for step, optimizer in zip(steps, inside, strict=True):
        assert step["ts"] <= optimizer["ts"]
        assert optimizer["ts"] + optimizer["dur"] <= step["ts"] + step["dur"]


def test_the_steps_before_the_recording_are_measured(record):
    recording = record(
        """
        import time
        import torch
        weight = torch.nn.Parameter(torch.ones(4))
        optimizer = torch.optim.SGD([weight])
        for i in range(14):
            # Start-up, then 5 ms a step; the recorded ones are slow.
            time.sleep(0.05 if i < 4 else 0.005 if i < 9 else 0.1)
            weight.sum().backward()
            optimizer.step()
        """,
        first=10,
        last=12,
    )
    unrecorded = recording.recordings[0]["unrecorded"]
    assert unrecorded["steps"] == 4
    assert 5e6 <= unrecorded["median_ns"] < 50e6
    with open(recording.recordings[0]["path"]) as file:
        assert json.load(file)["fastprof_unrecorded"] == unrecorded


AFTER = """
import time, torch
from torch.optim import SGD
weight = torch.nn.Parameter(torch.ones(4))
optimizer = SGD([weight])
for i in range({n_steps}):
    # Short steps before and after; the recorded ones are slow.
    time.sleep(0.1 if 5 <= i < 9 else 0.005)
    weight.sum().backward()
    optimizer.step()
    print(type(vars(SGD)["step"]).__name__)
"""


@pytest.mark.parametrize(("n_steps", "n_after"), [(16, 2), (11, 1), (9, 0)])
def test_as_many_steps_as_were_recorded_are_measured_after_it(record, n_steps, n_after):
    recording = record(AFTER.format(n_steps=n_steps), first=5, last=9)
    after = recording.recordings[0]["after"]
    assert [each["n_steps"] for each in recording.recordings] == [4]
    assert recording.report["steps"] == 9 and len(recording.report["step_lengths"]["ns"]) == 9
    watched = recording.done.stdout.split()
    assert watched == ["Around"] * min(n_steps, 12) + ["function"] * (n_steps - 12)
    if n_after:
        assert after["steps"] == n_after and 5e6 <= after["median_ns"] < 1e8
    else:
        assert after is None


def test_the_steps_after_a_recording_are_in_its_trace(tmp_path):
    trace = tmp_path / "trace-1.json"
    trace.write_text('{"traceEvents": [{"name": "}"}]\n}\n')
    after = {"steps": 2, "median_ns": 5_000_000}
    recordings = [{"path": str(trace), "after": after}]
    report = {"rank": 0, "pid": 1, "world": 1, "recordings": recordings}
    (tmp_path / "status-1.json").write_text(json.dumps(report))
    collect(tmp_path)
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        assert json.load(file) == {"traceEvents": [{"name": "}"}], "fastprof_after": after}


def test_nothing_is_measured_before_a_recording_of_the_first_steps(record):
    recording = record(TRAINING, first=1, last=3)
    assert recording.recordings[0]["unrecorded"] is None
    with open(recording.recordings[0]["path"]) as file:
        assert "fastprof_unrecorded" not in json.load(file)


def test_without_an_optimizer_calls_of_the_outermost_module_are_steps(record):
    recording = record(
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
        with torch.inference_mode():
            for i in range(8):
                net(torch.randn(4, 8))
        """
    )
    assert recording.report["steps"] == 5 and recording.report["by"] == "call"
    assert recording.layers == {"0": 2, "1": 2}


def test_calls_in_training_mode_are_steps_if_asked(record):
    source = """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        for i in range(8):
            net(torch.randn(4, 8)).sum().backward()
            with torch.no_grad():
                for each in net.parameters():
                    each -= 0.1 * each.grad
                    each.grad = None
        """
    recording = record(source, step="call")
    assert recording.report["steps"] == 5 and recording.layers == {"0": 2, "1": 2}


def test_calls_of_generate_are_steps(record):
    recording = record(
        """
        import torch
        class Mixin:
            def generate(self, x):
                for _ in range(4):
                    x = self(x)
                return x
        class Net(Mixin, torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Linear(8, 8)
            def forward(self, x):
                return self.body(x)
        net = Net().eval()
        with torch.no_grad():
            for i in range(8):
                net.generate(torch.randn(4, 8))
        """
    )
    # The first call of generate is where fastprof finds it, and not counted.
    assert recording.report["steps"] == 5 and recording.layers == {"body": 8}


def test_of_several_optimizers_the_rarest_ends_a_step(record):
    recording = record(
        """
        import torch
        class Generator(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.main = torch.nn.Sequential(torch.nn.Linear(8, 8))
            def forward(self, x):
                return self.main(x)
        class Critic(Generator):
            pass
        g, c = Generator(), Critic()
        of_g, of_c = torch.optim.SGD(g.parameters(), 0.1), torch.optim.SGD(c.parameters(), 0.1)
        for i in range(9):
            for k in range(2):
                c(g(torch.randn(4, 8)).detach()).mean().backward()
                of_c.step()
            c(g(torch.randn(4, 8))).mean().backward()
            of_g.step()
        """,
        first=5,
        last=7,
    )
    assert recording.counts[0]["Optimizer.step#SGD.step"] == 6
    names = {"Generator", "Generator.main", "Generator.main.0"}
    assert set(recording.layers) == names | {name.replace("Generator", "Critic") for name in names}
    assert set(recording.layers.values()) == {6}


def test_gradient_accumulation_and_nested_optimizers(record):
    recording = record(
        """
        import torch
        class Outer(torch.optim.Optimizer):
            def __init__(self, inner):
                self.inner = inner
                super().__init__(inner.param_groups, {})
            def step(self, closure=None):
                self.inner.step()
                self.inner.step()
        net = torch.nn.Linear(8, 1)
        optimizer = Outer(torch.optim.SGD(net.parameters(), 0.1))
        for i in range(24):
            net(torch.randn(4, 8)).sum().backward()
            if i % 3 == 2:
                optimizer.step()
        """
    )
    assert recording.report["steps"] == 5
    assert recording.layers == {"Linear": 6}  # a model without children is named by its class
    assert recording.counts[0]["Optimizer.step#Outer.step"] == 2


def test_compiled_models_keep_their_graph_and_have_one_layer(record):
    recording = record(
        """
        import torch, warnings
        import torch._dynamo.utils
        warnings.simplefilter("error")
        net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        compiled = torch.compile(net, backend="eager")
        for i in range(9):
            compiled(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        frames = torch._dynamo.utils.counters["frames"]
        assert frames["ok"] == frames["total"] == 1, frames
        assert not torch._dynamo.utils.counters["graph_break"]
        """
    )
    assert recording.layers == {"Sequential": 2}


def test_an_exception_has_the_same_traceback_and_keeps_the_recording(record):
    source = """
        import sys, torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.n = torch.nn.Linear(8, 1), 0
            def forward(self, x):
                self.n += 1
                if self.n == int(sys.argv[1]):
                    raise ArithmeticError("as it was asked to")
                return self.body(x)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for i in range(9):
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        """
    recording = record(source, "5", code=1)
    lines = recording.done.stderr.splitlines()
    assert "ArithmeticError: as it was asked to" in lines  # torch may write more after it
    assert not [line for line in lines if "fastprof/" in line]
    assert [(each["first"], each["n_steps"]) for each in recording.recordings] == [(3, 1)]


def test_first_calls_add_no_frame_to_tracebacks(record):
    recording = record(
        """
        import torch, traceback
        class Net(torch.nn.Module):
            def forward(self, x):
                raise ArithmeticError
        class Own(torch.optim.SGD):
            def step(self):
                raise ArithmeticError
        for call in (lambda: Net()(1), Own([torch.zeros(1)], 0.1).step):
            try:
                call()
            except ArithmeticError as error:
                files = [each.filename for each in traceback.extract_tb(error.__traceback__)]
                assert not [each for each in files if "fastprof" in each], files
        """
    )
    assert not recording.recordings


def test_workers_of_a_data_loader_and_forks_record_nothing(record_steps):
    recorded_steps = record_steps(
        """
        class Data(torch.utils.data.Dataset):
            def __init__(self):
                self.change = torch.nn.Linear(4, 8).eval()
            def __len__(self):
                return 36
            def __getitem__(self, i):
                with torch.no_grad():
                    return self.change(torch.randn(4))
        if os.fork() == 0:
            sys.exit(5)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
        for x in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2):
            net(x).sum().backward()
            optimizer.step()
        sys.exit(3)
        """,
        code=3,
    )
    assert recorded_steps.report["steps"] == 5
    assert not any(report["recordings"] for report in recorded_steps.reports[1:])


def test_a_program_without_steps_is_recorded_by_time(record):
    recording = record(
        """
        import time, torch
        end = time.monotonic() + 60
        a = torch.randn(8, 8)
        from pathlib import Path
        import json, os
        folder = Path(json.loads(os.environ["FASTPROF_RUN"])["directory"])
        def is_recorded():
            return any(json.loads(each.read_text())["recordings"]
                       for each in folder.glob("status-*.json"))
        while time.monotonic() < end and not is_recorded():
            a = torch.mm(a, a).clamp(-1, 1)
            time.sleep(0.01)
        """,
        after=0.1,
        seconds=0.2,
    )
    assert recording.report["steps"] == 0 and recording.steps == ["ProfilerStep#0"]
    assert recording.counts[0]["aten::mm"] > 3


def test_a_signal_records_now_and_again(record_steps):
    recorded_steps = record_steps(
        """
        for i in range(30):
            step()
            if i in (9, 19):
                os.kill(os.getpid(), signal.SIGUSR2)
        """,
        after=1e6,
    )
    # Steps between the recordings are not counted.
    assert [
        (recording["first"], recording["n_steps"]) for recording in recorded_steps.recordings
    ] == [(12, 2), (16, 2)]
    assert len({recording["path"] for recording in recorded_steps.recordings}) == 2


def test_a_running_profiler_is_reported_and_left_alone(record_steps):
    recorded_steps = record_steps(
        """
        with torch.profiler.profile() as profile:
            for i in range(9):
                step()
        assert len(profile.events()) > 100
        """
    )
    assert not recorded_steps.recordings and "already active" in recorded_steps.report["problem"]


def test_nothing_is_left_behind_in_the_model(record):
    recording = record(
        TRAINING
        + """
hooks = [h for m in net.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks)]
assert not hooks, hooks
assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl
torch.save(net, "/dev/null")
"""
    )
    assert recording.recordings
    assert os.path.isfile(recording.recordings[0]["path"])


def test_an_evaluation_before_training_is_not_recorded(record):
    source = """
        import sys, torch
        def evaluate():
            net.eval()
            with torch.no_grad():
                for i in range(int(sys.argv[1])):
                    net(torch.randn(4, 8))
            net.train()
        net = torch.nn.Sequential(torch.nn.Linear(8, 1))
        if sys.argv[2] == "early":
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
        evaluate()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for i in range(9):
            net(torch.randn(4, 8)).sum().backward()
            optimizer.step()
        """
    for n_calls, made in ((4, "late"), (20, "late"), (20, "early")):
        recording = record(source, str(n_calls), made)
        assert (recording.report["steps"], recording.report["by"]) == (5, "optimizer")
        assert [(each["first"], each["n_steps"]) for each in recording.recordings] == [(3, 2)]
        assert recording.counts[0]["Optimizer.step#SGD.step"] == 2
        recording.remove()


def test_a_compiled_step_of_an_optimizer_compiles_nothing_of_fastprof(record_steps):
    recorded_steps = record_steps(
        """
        import torch._dynamo.utils
        step = torch.compile(optimizer.step, backend="eager")
        for i in range(9):
            net(torch.randn(4, 8)).sum().backward()
            step()
            if i == 1:  # before the recording
                frames = torch._dynamo.utils.counters["frames"]
                assert frames["ok"] == frames["total"] < 10, frames
        """
    )
    assert recorded_steps.report["steps"] == 5 and recorded_steps.recordings


def test_a_request_waits_for_a_long_step(record_steps):
    recorded_steps = record_steps(
        """
        for i in range(4):
            net(torch.randn(4, 8)).sum().backward()
            time.sleep(2.5 if i == 0 else 0)  # longer than the wait of a program without steps
            optimizer.step()
        """,
        after=0.1,
    )
    assert [
        (recording["first"], recording["n_steps"]) for recording in recorded_steps.recordings
    ] == [(2, 2)]
    assert recorded_steps.counts[0]["Optimizer.step#SGD.step"] == 2
