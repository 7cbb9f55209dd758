"""The order of tests of real traces: tests of one trace follow each other and share its data.

In the fast profile, a file of tests runs on an eighth of the traces, each file on other ones; tests
marked `every_trace` run on all.
"""

import gc
import zlib
from collections import defaultdict
from functools import cache

import pytest

from real import open_traces
from support.hypothesis_profiles import IS_FULL
from support.real_data import data_dir, trace_of

SHARE = 1 if IS_FULL else 8


def pytest_collection_modifyitems(config, items):
    """Put the tests of a trace together, those of the largest first; then all other tests."""
    here = __file__.removesuffix("conftest.py")
    places = [i for i, item in enumerate(items) if str(item.path).startswith(here)]
    own = [items[i] for i in places]
    is_named = any("::" in word for word in config.args)
    kept = own if is_named else _share_of(own)
    config.hook.pytest_deselected(items=[*set(own).difference(kept)])
    items[slice(places[0], places[-1] + 1)] = sorted(
        kept, key=lambda item: _largest_first(trace_of(item.nodeid))
    )


def _share_of(items):
    """The tests of one in SHARE traces, and at least one of each test and of each trace."""
    traces = sorted({trace_of(item.nodeid) for item in items} - {""}, key=_largest_first)
    by_test = defaultdict(list)
    for item in items:
        by_test[item.nodeid.replace(trace_of(item.nodeid), "")].append(item)
    kept = set()
    for each in by_test.values():
        first = zlib.crc32(each[0].path.name.encode()) % SHARE
        taken = traces[first::SHARE]
        chosen = [item for item in each if trace_of(item.nodeid) in taken]
        kept.update(each if len(each) == 1 else chosen or each[:1])
    missing = {trace_of(item.nodeid): item for item in items}
    for item in kept:
        missing.pop(trace_of(item.nodeid), None)
    kept.update(missing.values())
    kept.update(item for item in items if item.get_closest_marker("every_trace"))
    return [item for item in items if item in kept]


def _largest_first(path):
    """The order of traces, the same in all processes: sizes are equal where there are no files."""
    return -_size(path), path


@cache
def _size(path):
    file = data_dir() and data_dir() / path
    return file.stat().st_size if path and file and file.is_file() else 0


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
