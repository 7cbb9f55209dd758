"""Cells of real traces: what is known without computing the shares of costs."""

import numpy as np
import pytest

from fastprof.profile.from_trace import TraceSource
from real.open_traces import profile
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*.nvvp", "pyprof/*.s*")


@pytest.mark.parametrize("path", TRACES)
def test_a_cost_is_known_where_its_share_is(path: str) -> None:
    source = profile(path, copies=True).source
    assert isinstance(source, TraceSource)
    flops, moved = source._lookups.known
    assert np.array_equal(flops, source.column("flops").values >= 0)
    assert np.array_equal(moved, source.column("bytes").values >= 0)


@pytest.mark.parametrize("path", TRACES)
def test_dict_lines_have_the_coverage_of_reports(path: str) -> None:
    source = profile(path, copies=True).source
    assert isinstance(source, TraceSource)
    result, expected = source._copy()._cover_alone(), source.coverage(True)
    assert (str(result), result.unknown()) == (str(expected), expected.unknown())
    assert (result.known, result.kernels) == (expected.known, expected.kernels)
