"""The order of tests of real traces: tests of one trace follow each other and share its data."""

import gc

import pytest

import open_traces
from real_data import data_dir, trace_of


def pytest_collection_modifyitems(items):
    """Put the tests of a trace together, those of the largest first; then all other tests."""
    here = __file__.removesuffix("conftest.py")
    places = [i for i, item in enumerate(items) if str(item.path).startswith(here)]
    ordered = sorted((items[i] for i in places), key=_largest_first)
    for i, item in zip(places, ordered, strict=True):
        items[i] = item


def _largest_first(item):
    path = trace_of(item.nodeid)
    return -((data_dir() / path).stat().st_size if path else 0), path


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    """Nothing: tests of many files alternate, and traces must not be frozen."""


def pytest_runtest_setup(item):
    """Millions of objects of one trace, none of them garbage: search for it after the trace."""
    gc.disable()


def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or _group(nextitem) != _group(item):
        open_traces.forget()
        gc.enable()
        gc.collect()
        gc.freeze()


def _group(item):
    return trace_of(item.nodeid) or item.path
