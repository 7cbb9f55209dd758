"""Kernels, calls, ranges and API calls one by one."""

import re

import numpy as np
import pytest

from fastprof.analysis.find.columns import duration, nth, times_of
from fastprof.errors import BadInputError, ReportError
from support.exports import Export

US = 1000


@pytest.fixture
def profile(opened):
    """Six kernels of three calls under two ranges, on two streams, and a copy."""
    trace = Export()
    for i in range(3):
        at = 100 * US * i
        trace.push_pop(at, at + 90 * US, f"step {i}", tid=1)
        trace.push_pop(at + 1 * US, at + 80 * US, "aten::mm, seq = 5", tid=1)
        for k in range(2):
            corr = 10 * i + k + 1
            trace.launch(at + (10 + 30 * k) * US, at + (14 + 30 * k) * US, corr=corr, tid=1)
            start = at + (20 + 30 * k) * US
            trace.kernel(start, start + (i + 1) * (k + 1) * US, corr=corr, name=f"gemm_{k}",
                         stream=7 + k)  # fmt: skip
    trace.launch(310 * US, 312 * US, corr=99, tid=1, name="cudaMemcpyAsync")
    trace.copy(320 * US, 325 * US, 99, 1, 4096)
    return opened(trace)


def found(table, *names):
    """Tuples of some columns."""
    return [tuple(row[name] for name in names) for row in table]


def test_kernels_are_numbered_in_order_of_start(profile):
    table = profile.find()
    assert found(table, "n", "idx", "at_ns")[:3] == [(1, 1, 0), (2, 2, 30 * US), (3, 3, 100 * US)]
    assert len(table) == 7 and table.total == {"gpu_ns": (3 + 6 + 9 + 5) * US}
    assert table.lead == ("7 of 7 kernels, copies and memsets, 23 us of GPU time",)


@pytest.mark.parametrize(
    ("options", "idx"),
    [
        ({"where": "stream=8"}, [2, 4, 6]),
        ({"where": ["stream=8", "kernel=gemm_1"], "nth": 2}, [4]),
        ({"nth": -1}, [7]),
        ({"nth": "2:3"}, [2, 3]),
        ({"nth": "-2:"}, [6, 7]),
        ({"nth": ":-6"}, [1, 2]),
        ({"nth": 8}, []),
        ({"longer": "4us"}, [4, 6, 7]),
        ({"shorter": "2us"}, [1]),
        ({"longer": "2us", "shorter": "3us"}, [2, 3]),
        ({"between": "31us:101us"}, [2, 3]),
        ({"between": "100us:"}, [3, 4, 5, 6, 7]),
        ({"between": ":1us"}, [1]),
        ({"after": 2, "before": 6}, [3, 4, 5]),
        ({"after": 2, "where": "stream=8", "nth": 1}, [4]),
        ({"before": 6, "where": "stream=8", "nth": -1}, [4]),
        ({"where": "kind=memcpy"}, [7]),
    ],
)
def test_conditions_select(options, idx, profile):
    assert [number for (number,) in found(profile.find(**options), "idx")] == idx


def test_occurrences_keep_their_numbers(profile):
    assert found(profile.find(where="stream=7", nth="2:3"), "n", "idx") == [(2, 3), (3, 5)]


def test_calls_add_up_their_kernels(profile):
    table = profile.find("calls", where="op=mm")
    assert found(table, "idx", "gpu_ns", "wall_ns", "kernels") == [
        (1, 3 * US, 32 * US, 2), (3, 6 * US, 34 * US, 2), (5, 9 * US, 36 * US, 2),
    ]  # fmt: skip
    some = profile.find("calls", where="stream=8", longer="4us")
    assert found(some, "idx", "gpu_ns", "kernels") == [(4, 4 * US, 1), (6, 6 * US, 1)]


def test_ranges_have_the_work_launched_inside(profile):
    table = profile.find("ranges", where="name=step*")
    assert found(table, "name", "wall_ns", "gpu_ns", "kernels", "level", "kind") == [
        (f"step {i}", 90 * US, 3 * (i + 1) * US, 2, 0, "user") for i in range(3)
    ]
    assert found(profile.find("ranges", where="range=step \\*", nth=2), "name") == []
    assert found(profile.find("ranges", where="range=step [*]", nth=2), "name") == [("step 1",)]
    inner = profile.find("ranges", where="kind=operators", after=2, before=5)
    assert found(inner, "parent", "level") == [("step 1", 1), ("step 2", 1)]


def test_api_calls_name_the_kernel_that_they_launch(profile):
    table = profile.find("api", where="name=cudaLaunchKernel*", nth="1:2")
    assert found(table, "wall_ns", "idx", "kind", "thread") == [
        (4 * US, 1, "launch", 1), (4 * US, 2, "launch", 1),
    ]  # fmt: skip
    assert found(profile.find("api", where="kind=copy"), "idx") == [(7,)]


def test_conditions_that_select_nothing_say_what_there_is(profile):
    assert profile.find(where="op=mn").notes == ("no work has op=mn: did you mean na or mm?",)
    (note,) = profile.find("ranges", where="name=stop 1").notes
    assert re.match("no work has name=stop 1: did you mean step 1", note)


def test_the_part_of_a_profile_counts(profile):
    part = profile.trim("step 1")
    assert found(part.find(), "idx") == [(3,), (4,)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "streams"}, "expected of to be one of kernels, calls, ranges, api"),
        ({"nth": "0"}, "expected an occurrence such as 3, -1 or 2:5, found '0'"),
        ({"nth": ":"}, "expected an occurrence"),
        ({"longer": "3"}, "expected a duration such as 1ms or 20us, found '3'"),
        ({"between": "1ms"}, "expected A:B with times"),
        ({"between": "2ms:1ms"}, "2ms:1ms ends before it begins"),
        ({"after": 8}, "there is no kernel 8: the file has 7"),
        ({"where": "opp=mm"}, "unknown key 'opp'"),
    ],
)
def test_invalid_options_are_errors(options, message, profile):
    with pytest.raises(ReportError, match=re.escape(message)):
        profile.find(**options)


def test_dict_lines_have_kernels_only(tmp_path):
    import fastprof

    (tmp_path / "net.dict").write_text("{'kShortName': 'k', 'kDuration': 5}\n")
    profile = fastprof.open(tmp_path / "net.dict")
    assert found(profile.find(), "idx", "at_ns", "gpu_ns") == [(1, None, 5)]
    with pytest.raises(BadInputError, match="dict lines"):
        profile.find("ranges")


@pytest.mark.parametrize(
    ("text", "picked"),
    [("1", [0]), ("3", [2]), ("-1", [9]), ("-3:-2", [7, 8]), ("9:", [8, 9]), (":2", [0, 1])],
)
def test_occurrences_are_counted_from_one(text, picked):
    assert np.arange(10)[nth(text)].tolist() == picked


def test_times_are_texts_with_units():
    assert duration("1.5 ms") == 1_500_000 and duration("0") == 0
    assert times_of("1us: 2us") == (1000, 2000) and times_of(":1s") == (None, 10**9)
