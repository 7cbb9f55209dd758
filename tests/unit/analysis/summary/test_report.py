"""`summary` against plain Python over the rows of a profile."""

import statistics
from collections import defaultdict
from fnmatch import fnmatchcase
from typing import Any

import pytest

import fastprof
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.keys import key_of
from fastprof.model.numbers import without_numbers


@pytest.fixture(scope="module")
def rows(profile: fastprof.Profile) -> list[dict[str, Any]]:
    return list(profile.rows())


OF_ROW = {
    "op": lambda row: row["op"],
    "dir": lambda row: row["dir"],
    "layer": lambda row: ":".join(row["layer"]) or None,
    "layer-depth-1": lambda row: ":".join(row["layer"][:1]) or None,
    "stream": lambda row: row["stream"],
    "thread": lambda row: row["tid"],
    "file": lambda row: row["line"] and row["line"].rpartition(":")[0],
    "range": lambda row: ":".join(without_numbers(range_) for range_ in row["ranges"]) or None,
    "phase": lambda row: "copy" if row["kind"] in ("memcpy", "memset") else row["phase"],
}


def grouped(
    rows: list[dict[str, Any]], by: tuple[str, ...]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    result = defaultdict(list)
    for row in rows:
        result[tuple(OF_ROW[name](row) for name in by)].append(row)
    return result


@pytest.mark.parametrize(
    "by",
    [
        *(("op",), ("dir", "op"), ("layer", "dir"), ("layer-depth-1",), ("stream", "thread")),
        *(("file",), ("range",), ("phase", "stream", "op")),
    ],
)
def test_measures_are_those_of_the_rows(by, profile, rows):
    # Its random times are possible on a GPU that is fast enough.
    table = profile.summary(by, peak=dict.fromkeys(("fp32", "fp16", "fp64"), 1e6), bandwidth=1e9)
    expected = grouped(rows, by)
    result = {tuple(row[name] for name in by): row for row in table.rows()}
    assert result.keys() == expected.keys()
    total = sum(row["sil"] for row in rows)
    for key, members in expected.items():
        row, times = result[key], [member["sil"] for member in members]
        assert row["kernels"] == len(members)
        assert row["gpu_ns"] == sum(times)
        assert row["share"] == pytest.approx(sum(times) / total)
        assert row["mean_ns"] == pytest.approx(statistics.fmean(times))
        assert row["median_ns"] == statistics.median(times)
        assert (row["min_ns"], row["max_ns"]) == (min(times), max(times))
        assert row["std_ns"] == pytest.approx(statistics.pstdev(times), abs=1e-3)
        for name, rate in (("flops", "flop_per_s"), ("bytes", "bytes_per_s")):
            known = [member for member in members if member[name] is not None]
            assert row[name] == (sum(each[name] for each in known) if known else None)
            seconds = sum(each["sil"] for each in known) / 1e9
            is_rated = seconds >= 0.9 * sum(times) / 1e9 > 0
            assert row[rate] == (pytest.approx(row[name] / seconds) if is_rated else None)
        used = sum(member["sil"] for member in members if member["tc"] == "1")
        unused = sum(member["sil"] for member in members if member["tc"] == "0")
        assert row["tc_share"] == (pytest.approx(used / (used + unused)) if used + unused else None)
    assert table.total["gpu_ns"] == total
    assert table.total["kernels"] == len(rows)
    times = [row["gpu_ns"] for row in table.rows()]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("name", sorted(KEY_NAMES))
def test_every_key_groups_all_kernels(name, profile):
    table = profile.summary(name)
    assert sum(row["kernels"] for row in table.rows()) == len(profile)
    assert len(key_of(profile, name)) == len(profile)


def test_where_selects_by_glob(profile, rows):
    def kernels(where: Any) -> int:
        return int(profile.report("summary", by="op", where=where).total["kernels"])

    assert kernels({"op": "l*"}) == sum(fnmatchcase(row["op"] or "na", "l*") for row in rows)
    assert kernels(["op=linear", "op=add*", "dir=fprop"]) == sum(
        row["dir"] == "fprop" and (row["op"] or "").startswith(("linear", "add")) for row in rows
    )
    assert kernels("dir!=fprop") == sum(row["dir"] != "fprop" for row in rows)
    assert kernels("op=na") == sum(row["op"] is None for row in rows)
    assert kernels({"stream": ["7", "20"]}) == sum(row["stream"] in (7, 20) for row in rows)
    assert kernels("op=nothing") == 0
    with pytest.raises(fastprof.ReportError, match="unknown key 'opp'; did you mean op"):
        kernels({"opp": "mm"})


def test_the_overview_stands_above_the_whole(profile):
    table = profile.summary()
    start = min(profile.kernels["start"])
    span = int(max(profile.kernels["end"]) - start)
    assert table.facts["span_ns"] == span
    assert 0 < table.facts["busy_ns"] <= span
    assert any("GPU busy" in line for line in table.lead)
    assert profile.report("summary", where="dir=fprop").lead == ()


def test_layers_deeper_than_asked_are_one_group(profile):
    depths = [profile.summary(f"layer-depth-{n}").n_rows for n in (1, 2, 99)]
    assert depths[0] < depths[1] <= depths[2] == profile.summary("layer").n_rows
