"""Warnings of torch's profilers, which are kept from the program."""

import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

from torch.autograd import profiler as autograd_profiler
from torch.profiler import profiler

import fastprof
from fastprof.annotate.quiet import unwarned
from support.waiting import in_threads

MODULES = [profiler, autograd_profiler]


@pytest.fixture
def shown():
    """The warnings that Python shows."""
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("always")
        yield result


@pytest.mark.parametrize("module", MODULES)
def test_warnings_of_this_thread_are_dropped_until_the_block_ends(module, shown):
    before = module.warn
    with pytest.raises(ValueError, match="of the program"), unwarned():
        module.warn("one")
        module.warn("two", FutureWarning, stacklevel=2)
        raise ValueError("of the program")
    assert module.warn is before
    module.warn("three")
    assert [str(each.message) for each in shown] == ["three"]


@pytest.mark.parametrize("module", MODULES)
def test_other_threads_see_theirs_at_the_same_place(module, shown):
    with unwarned():
        in_threads(lambda: module.warn("of another thread", FutureWarning, stacklevel=1))
    assert [(str(each.message), each.category) for each in shown] == [
        ("of another thread", FutureWarning)
    ]
    assert shown[0].filename == __file__


def test_blocks_of_two_threads_may_overlap(shown):
    entered, left = threading.Event(), threading.Event()

    def other():
        with unwarned():
            entered.set()
            assert left.wait(30)
            profiler.warn("dropped")

    thread = threading.Thread(target=other)
    with unwarned():
        thread.start()
        assert entered.wait(30)
        profiler.warn("dropped")
    profiler.warn("shown")
    left.set()
    thread.join()
    profiler.warn("shown")
    assert [str(each.message) for each in shown] == ["shown"] * 2


def test_what_python_showed_once_is_not_shown_again():
    registry: dict = {}
    with warnings.catch_warnings(record=True) as result:
        warnings.simplefilter("default")
        for _ in range(2):
            warnings.warn_explicit("once", UserWarning, "a.py", 1, registry=registry)
            with unwarned():
                profiler.warn("dropped")
    assert [str(each.message) for each in result] == ["once"]


def test_the_program_sees_what_torch_shows_once_if_it_uses_a_profiler_itself(monkeypatch, shown):
    """torch 2.6 to 2.11 warn when a profiler starts first."""
    known = set()
    monkeypatch.setattr(profiler, "_WARNINGS_SHOWN", known, raising=False)

    def start():
        if "cleared" not in known:
            known.add("cleared")
            profiler.warn("cleared")

    with unwarned():
        start()
    start()
    start()
    assert [str(each.message) for each in shown] == ["cleared"]


@pytest.fixture
def warning_torch(monkeypatch):
    """torch as up to 2.11, which warns when a profiler starts, also the first."""
    prepare = profiler.profile.prepare_trace

    def prepare_trace(self):
        profiler.warn("Profiler clears events at the end of each cycle.", stacklevel=2)
        prepare(self)

    monkeypatch.setattr(profiler.profile, "prepare_trace", prepare_trace)


def test_a_capture_warns_of_nothing(warning_torch, shown, tmp_path):
    with fastprof.capture(
        backend="torch", path=tmp_path / "net.json", wait=1, warmup=1, active=1
    ) as capture:
        for _ in range(3):
            torch.ones(2).relu()
            capture.step()
    assert (tmp_path / "net.json").stat().st_size
    assert [str(each.message) for each in shown] == []
