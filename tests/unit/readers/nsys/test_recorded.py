"""Reports of a real Nsight Systems are read; skipped without one that records and exports."""

import sys

import numpy as np
import pytest

import fastprof
from fastprof.analysis.host.states import switched_out, system_calls
from fastprof.cli import main
from support import nsys_tool, nvtx_recorder
from support.nvtx_read_back import assert_agrees
from support.nvtx_recording import Recording

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")
pytestmark = pytest.mark.usefixtures("real_nsys")

PROGRAM = """
import ctypes, os, signal, sys, threading, time
import torch
import fastprof
from fastprof.annotate.text import tool_domain
torch.set_num_threads(1)
fastprof.init()
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
fastprof.annotate_layers(net)
core = ctypes.CDLL(sys.argv[1])
core.nvtxRangeStartA.restype = ctypes.c_uint64
core.nvtxNameOsThreadA(threading.get_native_id(), b"my main")
default, mine = tool_domain(), tool_domain("mine")

def step():
    net(torch.randn(8, 64)).sum().backward()

for number in range(3):
    default.push_range(default.get_event_attributes(message=f"ProfilerStep#{number}"))
    step()
    mine.push_range(mine.get_event_attributes(message="in mine", category="net", payload=7))
    time.sleep(0.01)
    mine.pop_range()
    default.pop_range()
moved = core.nvtxRangeStartA(b"moved")

def work():
    core.nvtxRangeEnd(ctypes.c_uint64(moved))
    core.nvtxRangePushA("größe ≤ 層".encode())
    step()
    core.nvtxRangePop()
    core.nvtxMarkA(b"mark")

thread = threading.Thread(target=work)
thread.start()
thread.join()
child = os.fork()
core.nvtxRangePushA(b"after fork")
time.sleep(0.01)
core.nvtxRangePop()
if not child:
    os._exit(0)
os.waitpid(child, 0)
own = os.getpid()
child = os.fork()
if not child:
    time.sleep(0.1)
    os.kill(own, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(own, signal.SIGCONT)
    os._exit(0)
core.nvtxRangePushA(b"stopped by a signal")
until = time.monotonic() + 0.6
while time.monotonic() < until:
    pass
core.nvtxRangePop()
os.waitpid(child, 0)
core.nvtxRangePushA(b"never closed")
core.nvtxRangePushA(b"x" * 1000)
core.nvtxRangePop()
time.sleep(0.2)
"""


@pytest.fixture(scope="module", params=["none", "process-tree"])
def recording(request, tmp_path_factory):
    """The stem of a recording, without and with CPU samples."""
    if request.param != "none" and nsys_tool.version() < 2023:
        pytest.skip("nsys 2022.4 may hang when it samples a program")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    core = str(nvtx_recorder.core_api())
    program = [sys.executable, str(folder / "program.py"), core]
    output = nsys_tool.profiled(folder / "net", *program, threads=request.param)
    assert (folder / "net.sqlite").exists(), output
    return folder / "net"


def test_ranges_are_those_of_the_tables(recording):
    path = recording.with_suffix(".sqlite")
    texts = {assert_agree.text for assert_agree in assert_agrees(Recording(path))}
    assert {"größe ≤ 層", "in mine", "never closed", "x" * 1000, "layer:0", "after fork"} <= texts
    profile = fastprof.open(path)
    assert profile.warnings == [] and len(profile) == 0
    assert profile.about.steps.number.tolist() == [0, 1, 2]
    assert "my main" in profile.about.threads.values()
    assert len(profile.os_calls)
    assert profile.ranges.n_ended_elsewhere == 1


def test_a_stopped_process_is_off_the_cpu_in_no_call(recording):
    profile = fastprof.open(recording.with_suffix(".sqlite"))
    if not len(profile.cpu_switches):
        pytest.skip("recorded without thread switches")
    ranges, out, calls = profile.ranges, switched_out(profile), system_calls(profile)
    names = [meaning.label for meaning in ranges.meanings]
    (row,) = np.flatnonzero(ranges.label == names.index("stopped by a signal"))
    is_own = out.thread == ranges.thread[row]
    is_own &= (out.start >= ranges.start[row]) & (out.end <= ranges.end[row])
    length = np.where(is_own, out.end - out.start, 0)
    longest = int(length.argmax())
    assert length[longest] > 200_000_000
    overlaps = (calls.thread == ranges.thread[row]) & (calls.end - calls.start > 1_000_000)
    overlaps &= (calls.start < out.end[longest]) & (calls.end > out.start[longest])
    assert not overlaps.any()


@pytest.mark.parametrize(
    "command",
    ["info", "prof", "parse", "overview", "ranges", "layers", "steps", "idle", "summary", "stats"],
)
def test_commands_read_it(recording, command, capfd):
    assert main([command, f"{recording}.sqlite"]) == 0
    result = capfd.readouterr()
    if command in ("layers", "steps"):
        assert "no kernels: record with nsys profile -t cuda,nvtx" in result.out + result.err


def test_a_page_is_made(recording):
    assert main(["report", f"{recording}.sqlite", "-o", f"{recording}.html"]) == 0
    assert recording.with_suffix(".html").read_text().startswith("<!doctype html>")


def test_a_report_is_exported_and_read(recording, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path))
    assert main(["ranges", f"{recording}.nsys-rep"]) == 0
    out, err = capfd.readouterr()
    assert "in mine" in out and "exported with" in err


@pytest.mark.parametrize("form", ["parquetdir", "arrowdir", "json", "jsonlines"])
def test_other_exports_read_as_the_sqlite_export(recording, tmp_path, monkeypatch, form):
    if form.endswith("dir"):
        pytest.importorskip("pyarrow")
    monkeypatch.setenv("FASTPROF_CACHE", str(tmp_path / "cache"))
    output = nsys_tool.nsys(
        "export", "--type", form, "--output", str(tmp_path / "tables"), f"{recording}.nsys-rep"
    )
    if not (tmp_path / "tables").exists():
        pytest.skip(f"this nsys exports no {form}: {output[-200:]}")
    ours, expected = fastprof.open(tmp_path / "tables"), fastprof.open(f"{recording}.sqlite")
    assert ours.ranges.to_pandas().equals(expected.ranges.to_pandas())
    assert ours.os_calls.to_pandas().equals(expected.os_calls.to_pandas())
    assert ours.cpu_samples.to_pandas().equals(expected.cpu_samples.to_pandas())
    assert ours.cpu_switches.to_pandas().equals(expected.cpu_switches.to_pandas())
    assert ours.about.threads == expected.about.threads
    assert ours.about.processes == expected.about.processes
    assert len(ours.ranges) > 10
