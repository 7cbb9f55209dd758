"""The order of tests of real traces: tests of one trace follow each other and share caches."""

import gc
from itertools import groupby


def pytest_collection_modifyitems(items):
    """Sort the tests of each file in this folder by the trace that they are parametrized with."""
    here = __file__.removesuffix("conftest.py")
    ordered = []
    for path, tests in groupby(items, key=lambda item: item.path):
        of_file = list(tests)
        ordered += sorted(of_file, key=trace) if str(path).startswith(here) else of_file
    items[:] = ordered


def pytest_runtest_setup(item):
    """Millions of objects of one trace, none of them garbage: search for it after the trace."""
    gc.disable()


def pytest_runtest_teardown(item, nextitem):
    is_last = nextitem is None or nextitem.path != item.path
    if is_last or trace(nextitem) != trace(item):
        gc.enable()
        gc.collect()


def trace(item):
    """The trace of a test; "" where it has none."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return str(given.get("path") or given.get("name") or "")
