"""Fixtures and options of all tests: --run-slow, and the Hypothesis profile."""

import functools
import gc
import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
# Test processes share the cores: threads of torch would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from support import hypothesis_profiles


def pytest_addoption(parser):
    parser.addoption("--run-slow", action="store_true", help="run the tests that take minutes, too")


def pytest_configure(config):
    hypothesis_profiles.register()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # `make test &`: children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes minutes; runs with --run-slow only")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--run-slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: give --run-slow"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """`-n auto`: a worker per core that this process may use, as with taskset."""
    return len(os.sched_getaffinity(0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute files, and the tests of real traces by trace: each trace is parsed once."""
    if config.getvalue("dist") != "loadfile":
        return None
    from support.scheduler import ByFileOrTrace

    return ByFileOrTrace(config, log)


def pytest_collection(session):
    """Collection makes a million objects and hardly any garbage: search for it once, at its end."""
    gc.disable()


def pytest_collection_finish(session):
    """Keep what collection made out of every search and collection of garbage."""
    gc.enable()
    gc.set_threshold(10_000, 20, 20)  # tests make many objects and little garbage
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    """Keep what earlier files imported out of the searches of this file: each init makes one."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def forked_workers():
    """Let workers of batches be forks of the command server; yields their program as it was."""
    from fastprof.ranks import local as process
    from support import command_server

    program = process._PROGRAM
    with pytest.MonkeyPatch.context() as patch:
        forking = command_server.forking(program, command_server.socket_of())
        patch.setattr(process, "_PROGRAM", forking)
        yield program


@pytest.fixture
def record_nvtx(tmp_path):
    """nvtx_recorder.record, for programs that use nvtx; their exports stay in tmp_path."""
    from support import nvtx_recorder

    reason = nvtx_recorder.why_not()
    if reason is None and importlib.util.find_spec("nvtx") is None:
        reason = "no nvtx: pip install nvtx"
    if reason is not None:
        pytest.skip(reason)
    return functools.partial(nvtx_recorder.record, directory=tmp_path)


@pytest.fixture(scope="session")
def real_nsys():
    """Skips the test without an nsys that records and exports."""
    from support import nsys_tool

    reason = nsys_tool.why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def annotated():
    """The session of an init that ends with the test, which it is given to torch for."""
    pytest.importorskip("torch")
    pytest.importorskip("nvtx")
    import fastprof

    with fastprof.init() as session:
        yield session
    fastprof.uninit()


@pytest.fixture(params=["nobody listens", "the profiler records", "a tool takes ranges"])
def heard(request, annotated):
    """What is heard of an annotated test, which runs in all three states; its ranges must nest."""
    from support.annotation_modes import listening

    with listening(request.param) as heard:
        yield heard
    assert heard.is_nested()
