"""The memory of a trace is free as soon as its profile is, without the garbage collector."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.reports import all_reports
from fastprof.api.open import open_trace
from fastprof.page import page_of


def _page(profile: fastprof.Profile) -> object:
    return page_of(profile)


def _report(name: str) -> Callable[[fastprof.Profile], object]:
    return lambda profile: profile.report(name)


USES = {"page": _page} | {
    name: _report(name) for name, each in all_reports().items() if name != "whatif"
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "net.sqlite"
    generate(path, 3000)
    return path


@pytest.mark.parametrize("name", USES)
def test_no_reference_cycle_keeps_a_trace(trace: Path, name: str) -> None:
    gc.collect()
    gc.disable()
    try:
        profile = open_trace(trace, host=True)
        USES[name](profile)
        source = profile.source
        held = [weakref.ref(each) for each in (profile, source, source._lookups)]
        del profile, source
        assert [each() for each in held] == [None, None, None]
    finally:
        gc.enable()
