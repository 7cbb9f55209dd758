"""fastprof.capture: recorded iterations, output and termination.

Calls of CUDA and their order are checked with stand-ins that log them; the tests marked gpu call
CUDA itself.
"""

import contextlib
import gc
import gzip
import json
import os
import warnings

import pytest

import fastprof
from fastprof.cli import main

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

from fastprof.analysis.host.states import State, host_states
from fastprof.annotate import TORCH, recorders
from fastprof.annotate import capture as module
from fastprof.annotate.text import recordable
from fastprof.errors import CaptureError
from support import processes

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU on this machine")
MARKER = "{'mod': 'torch', 'op': 'relu', 'args': [{'name': '', 'type': 'str', 'value': \"it's\"}]}"


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """One process in its own folder; no capture is left running."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    assert module._running is None or module._running() is None


def captured(**numbers):
    return fastprof.capture(**{"backend": "torch", "wait": 1, "warmup": 1, **numbers})


def work(i):
    torch.ones(2 + i, 2).relu()


def loop(cap, n, work=work):
    with cap:
        for i in range(n):
            work(i)
            cap.step()
    return cap


def steps(path):
    profile = fastprof.open(path)
    assert profile.warnings == []
    return profile.about.steps.number.tolist()


def events(path):
    text = path.read_bytes()
    return json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)["traceEvents"]


# Selection of iterations, with torch.profiler on a CPU.


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"wait": 2, "warmup": 1, "active": 2}, [3, 4]),
        ({"wait": 0, "warmup": 1, "active": 1}, [1]),
        ({"wait": 3, "warmup": 2}, [5]),
        ({"wait": 0, "warmup": 0, "active": 3}, [0, 1, 2]),
    ],
)
def test_the_chosen_iterations_are_in_the_trace_and_no_others(numbers, expected):
    cap = loop(captured(**numbers, with_stack=False), 9)
    assert steps(cap.path) == expected
    dims = [e["args"]["Input Dims"] for e in events(cap.path) if e.get("name") == "aten::relu"]
    assert dims == [[[2 + i, 2]] for i in expected]


def test_python_stacks_are_recorded_unless_not_wanted_or_annotation_tells_the_lines():
    def has_stacks(**numbers):
        path = loop(captured(**numbers), 3).path
        return any(event.get("cat") == "python_function" for event in events(path))

    assert has_stacks() and not has_stacks(with_stack=False)
    with fastprof.init():
        assert has_stacks(with_stack=True) and not has_stacks()


def test_garbage_collections_are_recorded_with_stacks():
    if recorders._with_collections() is None:
        pytest.skip(f"torch {torch.__version__} records no garbage collections")

    def collects(i):
        work(i)
        gc.collect()

    before = [*gc.callbacks]
    path = loop(captured(), 3, collects).path
    assert any(event.get("name") == "Python GC" for event in events(path))
    states = host_states(fastprof.open(path)).events
    assert len(states[State.GARBAGE].start) >= 1
    assert gc.callbacks == before


def test_nothing_is_recorded_before_and_after():
    is_on = []
    loop(captured(), 5, lambda i: is_on.append(torch.autograd._profiler_enabled()))
    assert is_on == [False, False, True, False, False]


def test_the_trace_lies_in_the_working_directory_and_nothing_beside_it(tmp_path):
    cap = captured()
    assert cap.path is None
    loop(cap, 3)
    assert cap.path == tmp_path / "fastprof_trace.json.gz"
    assert os.listdir(tmp_path) == ["fastprof_trace.json.gz"]


@pytest.mark.parametrize("name", ["net.json", "sub/net.json.gz"])
def test_the_trace_goes_where_path_says_and_replaces_an_older_one(tmp_path, name):
    (tmp_path / "sub").mkdir()
    (tmp_path / name).write_text("old")
    assert steps(loop(captured(path=name), 3).path) == [2]
    assert steps(loop(captured(path=tmp_path / name), 3).path) == [2]
    assert sorted(os.listdir(tmp_path)) in (["sub"], ["net.json", "sub"])
    assert len(os.listdir(tmp_path / "sub")) == ("/" in name)


def test_steps_after_the_end_are_harmless_and_a_capture_may_be_used_again():
    cap = loop(captured(), 3)
    for _ in range(5):
        cap.step()
    cap.stop()
    before = cap.path.stat().st_ino
    assert steps(loop(cap, 4).path) == [2]
    assert cap.path.stat().st_ino != before


# Loops that end early.


def test_a_loop_that_ends_before_the_recording_says_that_nothing_was_captured(tmp_path):
    with pytest.warns(RuntimeWarning) as told:
        cap = loop(fastprof.capture(backend="torch"), 4)
    (warning,) = [each for each in told if each.category is RuntimeWarning]  # torch may warn, once
    assert str(warning.message) == (
        "fastprof.capture: nothing was captured: expected 13 calls of step(), found 4 "
        "(wait=10, warmup=2, active=1)"
    )
    assert warning.filename == __file__
    assert cap.path is None
    assert os.listdir(tmp_path) == []


def test_a_loop_that_ends_in_warmup_leaves_the_profiler_off(tmp_path):
    with pytest.warns(RuntimeWarning, match=r"nothing was captured: .* of step\(\), found 2 "):
        cap = loop(captured(warmup=5), 2)
    assert not torch.autograd._profiler_enabled()
    assert (cap.path, os.listdir(tmp_path)) == (None, [])


def test_a_loop_that_is_left_early_keeps_what_was_recorded():
    told = pytest.warns(RuntimeWarning, match="1 of 3 iterations were fully captured")
    with told, captured(active=3) as cap:
        for i in range(9):
            work(i)
            if i == 3:
                break
            cap.step()
    assert steps(cap.path) == [2, 3]


def test_stop_inside_of_the_loop_ends_the_capture():
    cap = captured(active=5).start()
    for i in range(4):
        work(i)
        cap.step()
    with pytest.warns(RuntimeWarning, match="2 of 5 iterations"):
        cap.stop()
    cap.stop()
    cap.step()
    assert steps(cap.path) == [2, 3, 4]  # the last one was entered


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_error_in_the_loop_ends_the_capture_and_no_file_is_written(tmp_path, at):
    (tmp_path / "fastprof_trace.json.gz").write_text("of an earlier run")

    def fails(i):
        if i == at:
            raise KeyError(at)

    cap = captured()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(KeyError):
            loop(cap, 9, fails)
    assert not torch.autograd._profiler_enabled()
    assert cap.path is None
    assert (tmp_path / "fastprof_trace.json.gz").read_text() == "of an earlier run"
    assert steps(loop(captured(), 3).path) == [2]


# Invalid requests.


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"wait": -1}, "wait=-1: expected an integer number of iterations, at least 0"),
        ({"warmup": 1.5}, "warmup=1.5: expected an integer number"),
        ({"active": 0}, "active=0: expected an integer number of iterations, at least 1"),
        ({"active": True}, "active=True: expected an integer number"),
        ({"backend": "kineto"}, "backend='kineto': expected one of 'nvtx', 'torch'"),
        ({"path": "net.txt"}, "net.txt: expected a name ending in .json or .json.gz"),
        ({"path": "a.json", "backend": "nvtx"}, "path='a.json': with backend='nvtx', nsys writes"),
    ],
)
def test_wrong_arguments_are_told(wrong, message):
    with pytest.raises(CaptureError) as error:
        captured(**wrong)
    assert str(error.value).startswith(message)
    assert isinstance(error.value, fastprof.FastprofError)


def test_a_folder_that_is_not_there_is_told_before_the_loop_runs(tmp_path):
    for path in ("none/net.json", "d.json"):
        (tmp_path / "d.json").mkdir(exist_ok=True)
        with pytest.raises(CaptureError, match="cannot save the trace"):
            captured(path=path).start()


def test_step_of_a_capture_that_was_not_started_is_told():
    with pytest.raises(CaptureError, match="is not started; use `with`, or call start"):
        captured().step()


def test_captures_do_not_nest():
    with pytest.warns(RuntimeWarning, match="nothing"), captured() as cap:
        with pytest.raises(CaptureError, match="another capture is running"):
            captured().start()
        with pytest.raises(CaptureError, match="this capture is running"):
            cap.start()
    assert steps(loop(captured(), 3).path) == [2]


def test_a_profiler_of_the_users_own_around_it_is_told_and_goes_on():
    with torch.autograd.profiler.profile() as own:
        with pytest.raises(CaptureError, match="is already active; do not use emit_nvtx"):
            captured().start()
        work(0)
    assert "aten::relu" in [event.key for event in own.key_averages()]
    assert not torch.autograd._profiler_enabled()


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
def test_without_cuda_nvtx_is_refused_with_what_to_do():
    with pytest.raises(CaptureError) as error:
        fastprof.capture()
    assert str(error.value) in (
        "backend='nvtx' needs CUDA, and this PyTorch was built without it; use backend='torch'",
        "backend='nvtx' needs CUDA, and PyTorch finds no GPU; use backend='torch'",
    )


def test_without_torch_the_error_says_what_to_install(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no', name='torch')\n")
    program = (
        "import fastprof\n"
        "for name in ('capture', 'timer', 'timings'):\n"
        "    try: getattr(fastprof, name)\n"
        "    except fastprof.MissingDependencyError as error: print(error)\n"
        "fastprof.open"
    )
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = processes.python("-c", program, env={**os.environ, "PYTHONPATH": paths})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == (
        "fastprof.capture needs torch, which is not installed; run: pip install 'fastprof[torch]'"
    )
    assert len(done.stdout.splitlines()) == 3


# Several ranks.


@pytest.mark.parametrize("path", [None, "net.json.gz", "net.json"])
def test_each_rank_has_a_file_of_its_own(monkeypatch, tmp_path, path):
    monkeypatch.setenv("WORLD_SIZE", "4")
    for rank in "13":
        monkeypatch.setenv("RANK", rank)
        loop(captured(path=path), 3)
    stem, dot, suffix = (path or "fastprof_trace.json.gz").partition(".")
    expected = [f"{stem}.rank1{dot}{suffix}", f"{stem}.rank3{dot}{suffix}"]
    assert sorted(os.listdir(tmp_path)) == expected


def test_torch_distributed_tells_the_rank(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert recorders.rank_and_world() == (0, 1)
    finally:
        torch.distributed.destroy_process_group()
    assert recorders.rank_and_world() == (5, 8)


def test_annotations_of_graphs_that_the_program_made_are_in_the_trace(tmp_path):
    module = pytest.importorskip("torch.cuda._graph_annotations")
    node = (9 << 32) | 1
    module.get_kernel_annotations()[node] = [{"module_fqn": "layers.0.mlp", "size": {1}}, "text"]
    try:
        path = loop(captured(path="trace.json"), 3).path
    finally:
        module.clear_kernel_annotations()
    root = json.loads(path.read_text())
    assert root["fastprof_graph_annotations"] == {
        str(node): [{"module_fqn": "layers.0.mlp", "size": "{1}"}, "text"]
    }
    path = loop(captured(path="without.json"), 3).path
    assert "fastprof_graph_annotations" not in json.loads(path.read_text())


def test_only_the_chosen_ranks_record(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert loop(captured(ranks=[0]), 1).path is None  # and no warning
    assert os.listdir(tmp_path) == []
    assert loop(captured(ranks=range(2)), 3).path.name == "fastprof_trace.rank1.json.gz"


# fastprof reads the saved trace: everything but kernels.


def test_a_trace_without_a_gpu_is_read_kindly_everywhere(capfd, tmp_path):
    path = loop(captured(), 3).path
    profile = fastprof.open(path, copies=True)
    assert (len(profile), list(profile.rows()), profile.kernels["sil"].sum()) == (0, [], 0)
    assert profile.contents.ranges["operators"] >= 1
    for command in (["info"], ["info", "--json"], ["parse"], ["parse", "--format", "jsonl"],
                    ["prof"], ["prof", "--csv"], ["prof", "--json"], ["prof", "-w", "150"],
                    ["prof", "--all", "--unknown"]):  # fmt: skip
        assert main([*command, str(path)]) == 0
        out = capfd.readouterr()
        assert ("Found 0 kernels" in out.err) == (command[0] != "info")
        assert "Error" not in out.err
    for name, method in (("pandas", "to_pandas"), ("pyarrow", "to_arrow")):
        pytest.importorskip(name)
        assert len(getattr(profile, method)()) == 0
    assert main(["parse", str(path), "--format", "parquet", "-o", str(tmp_path / "x")]) == 0


@pytest.mark.parametrize("fast", [False, True])
def test_markers_layers_and_lines_of_the_users_are_read_from_what_torch_wrote(fast):
    make = torch._C._profiler._RecordFunctionFast if fast else torch.profiler.record_function

    # torch before 2.15 does not escape the quote in the marker: the file is invalid JSON, but is
    # read. Later ones write an apostrophe, so that the marker is none.
    marker = MARKER if TORCH < (2, 15) else recordable(MARKER)

    def annotated(i):
        with make("layer:conv1"), make("{'traceMarker': ['train.py:310']}"), make(marker):
            work(i)
        if fast:
            with make("layer:conv2", [torch.ones(3), 7], {"a": 1}):
                work(i)

    path = loop(captured(with_stack=False), 3, annotated).path
    profile = fastprof.open(path)
    assert profile.warnings == []
    ranges = profile.contents.ranges
    assert (ranges["layers"], ranges["annotations"]) == (1 + fast, 2)


# NVTX: the order of CUDA calls, logged by stand-ins without CUDA.


@pytest.fixture
def cuda(monkeypatch):
    """A stand-in for the CUDA functions that the recorder calls; returns the log of calls."""
    called = []

    def writes(word):
        return lambda *values: called.append(" ".join([word, *map(str, values)]))

    @contextlib.contextmanager
    def emit_nvtx(record_shapes):
        called.append(f"emit {record_shapes}")
        yield
        called.append("emit ends")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(recorders, "synchronize", writes("synchronize"))
    monkeypatch.setattr(recorders, "emit_nvtx", emit_nvtx)
    for name in ("start", "stop"):
        monkeypatch.setattr(recorders.profiler, name, writes(name))
    monkeypatch.setattr(recorders.nvtx, "range_push", writes("push"))
    monkeypatch.setattr(recorders.nvtx, "range_pop", writes("pop"))
    return called


def test_nvtx_does_in_order_what_one_does_by_hand(cuda):
    cap = fastprof.capture(wait=1, warmup=2, active=2)
    assert loop(cap, 7, lambda i: cuda.append(f"iteration {i}")).path is None
    assert cuda == [
        "iteration 0",
        "emit True", "iteration 1",
        "iteration 2",
        "synchronize", "start", "push ProfilerStep#3", "iteration 3",
        "pop", "push ProfilerStep#4", "iteration 4",
        "synchronize", "pop", "stop", "emit ends",
        "iteration 5",
        "iteration 6",
    ]  # fmt: skip


def test_nvtx_without_wait_and_warmup_begins_at_once(cuda):
    loop(fastprof.capture(wait=0, warmup=0), 1, lambda i: cuda.append("iteration"))
    begins = ["emit True", "synchronize", "start", "push ProfilerStep#0"]
    assert cuda == [*begins, "iteration", "synchronize", "pop", "stop", "emit ends"]


def test_nvtx_is_turned_off_when_the_loop_ends_early_or_fails(cuda):
    with pytest.warns(RuntimeWarning, match="0 of 3 iterations"):
        loop(fastprof.capture(wait=0, warmup=1, active=3), 1)
    assert cuda[-4:] == ["synchronize", "pop", "stop", "emit ends"]
    cuda.clear()
    with pytest.warns(RuntimeWarning, match="nothing"):
        loop(fastprof.capture(wait=0, warmup=5), 1)
    assert cuda == ["emit True", "emit ends"]
    cuda.clear()
    with pytest.raises(KeyError), fastprof.capture(wait=0, warmup=0):
        raise KeyError
    assert cuda[-4:] == ["synchronize", "pop", "stop", "emit ends"]


def test_a_gpu_in_trouble_does_not_hide_the_error_of_the_loop(cuda, monkeypatch):
    def fails():
        raise RuntimeError("CUDA error: device-side assert triggered")

    with pytest.raises(KeyError), fastprof.capture(wait=0, warmup=0):
        monkeypatch.setattr(recorders, "synchronize", fails)
        raise KeyError
    assert cuda[-3:] == ["pop", "stop", "emit ends"]


def test_amd_gpus_are_refused_with_what_to_do(cuda, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.2")
    with pytest.raises(CaptureError, match="does not support AMD GPUs; use backend='torch'"):
        fastprof.capture()


def test_only_gpus_with_memory_of_this_process_are_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: (0, 0, 8, 0)[device])
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    recorders.synchronize()
    assert waited == [1, 2]


# With a GPU.


@pytest.mark.gpu
@no_gpu
@pytest.mark.parametrize("n", [1, 5])
def test_nvtx_runs_with_cuda(n):
    x = torch.ones(64, 64, device="cuda")
    is_on = []

    def product(i):
        is_on.append(torch.autograd._profiler_enabled())
        x @ x

    expected = pytest.warns(RuntimeWarning) if n == 1 else contextlib.nullcontext()
    with expected:
        loop(fastprof.capture(wait=1, warmup=1), n, product)
    assert is_on == [False, True, True, False, False][:n]
    assert not torch.autograd._profiler_enabled()


@pytest.mark.gpu
@no_gpu
def test_kernels_of_the_chosen_iterations_are_in_the_trace():
    x = torch.ones(64, 64, device="cuda")
    cap = loop(captured(active=2, with_stack=False), 5, lambda i: [x @ x for _ in range(10)])
    profile = fastprof.open(cap.path)
    assert [row["op"] for row in profile.rows()].count("matmul") == 20
    assert profile.coverage.known["cost"] == profile.coverage.total
