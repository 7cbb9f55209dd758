"""Trees of GPU time of real traces, against the reports."""

import math
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.analysis.stacks.tree import DIRECTIONS, MEASURES, TREES, Stacks, stacks
from fastprof.model.table import Table
from fastprof.page.section import PageSource
from fastprof.page.sections.flame import section
from real.open_traces import profile
from support.real_data import traces

EVERY = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.dict")
every_tree = pytest.mark.parametrize(("path", "kind"), [(p, k) for p in EVERY for k in TREES])
every_trace = pytest.mark.parametrize("path", EVERY)

# Columns of `layers` and `lines` by measure and direction.
COLUMNS = {
    "gpu_ns": ("ns", None),
    "forward_ns": ("ns", "forward"),
    "backward_ns": ("ns", "backward"),
    "other_ns": ("ns", "other"),
    "step_ns": ("step_ns", None),
    "kernels": ("kernels", None),
    "calls": ("calls", None),
    "flops": ("flops", None),
    "bytes": ("bytes", None),
    "lost_ns": ("lost_ns", None),
}


def known(values: Any) -> Any:
    """Numbers with 0 where unknown."""
    return np.where(np.isnan(values) | (values == -1), 0, values)


def children_of(tree: Stacks, values: Any) -> Any:
    """[n] The sums over the children of each node."""
    out = np.zeros(len(tree))
    np.add.at(out, tree.parent[1:], values[1:])
    return out


def rows_by(tree: Stacks, types: set[str]) -> dict[tuple[str, ...], int]:
    """The nodes of some types, by their chain."""
    kinds = tree.type.array()
    return {tuple(tree.chain(row)): row for row in range(len(tree)) if kinds[row] in types}


def agree(table: Table, at: int, tree: Stacks, row: int) -> None:
    """A row of a table has the numbers of a node."""
    for column, (measure, direction) in COLUMNS.items():
        expected = table.columns[column].at(at)
        result = tree.inclusive(measure, direction)[row].item()
        if expected is None or (measure == "calls" and expected == 0):
            assert result == -1 or math.isnan(result), column
        else:
            assert result == pytest.approx(expected, rel=1e-9, abs=1e-6), column


@every_tree
def test_a_node_is_its_own_and_its_children(path: str, kind: str) -> None:
    tree = stacks(profile(path, copies=True), kind)
    for every in (tree, tree.pruned(1e-2)):
        assert (every.parent[1:] < np.arange(1, len(every))).all()
        for measure in MEASURES:
            for direction in (None, *DIRECTIONS):
                inside = known(every.inclusive(measure, direction))
                own = known(every.own(measure, direction))
                np.testing.assert_allclose(inside, own + children_of(every, inside), atol=1e-3)
            parts = sum(known(every.inclusive(measure, direction)) for direction in DIRECTIONS)
            np.testing.assert_allclose(known(every.inclusive(measure)), parts, atol=1e-3)


@every_tree
def test_the_root_is_the_total_of_the_summary(path: str, kind: str) -> None:
    opened = profile(path, copies=True)
    total = opened.report("summary").total if len(opened) else {}
    tree = stacks(opened, kind)
    for every in (tree, tree.pruned(1e-2)):
        root = {measure: every.inclusive(measure)[0].item() for measure in MEASURES}
        assert root["ns"] == total.get("gpu_ns", 0)
        assert root["kernels"] == len(opened)
        for measure in ("flops", "bytes"):
            assert (None if root[measure] == -1 else root[measure]) == total.get(measure)
        lost = total.get("lost_ns")
        assert root["lost_ns"] == pytest.approx(math.nan if lost is None else lost, nan_ok=True)


@every_trace
def test_nodes_of_layers_have_the_numbers_of_the_report(path: str) -> None:
    opened = profile(path, copies=True)
    table, tree = opened.report("layers"), stacks(opened, "layers")
    nodes = rows_by(tree, {"layer"})
    assert len(nodes) == table.n_rows
    depth = table.columns["depth"]
    chain: list[str] = []
    for at in range(table.n_rows):
        chain = [*chain[: max(depth.at(at) - 1, 0)], table.columns["name"].at(at)]
        agree(table, at, tree, nodes[tuple(chain)])


@every_trace
def test_lines_have_the_own_time_of_the_report(path: str) -> None:
    opened = profile(path, copies=True)
    table, tree = opened.report("lines"), stacks(opened, "lines", leaves=())
    own = {}
    for at in range(table.n_rows):
        if table.columns["own_ns"].at(at) > 0:
            own[table.columns["frame"].at(at)] = table.columns["own_ns"].at(at)
    result = tree.own("ns")
    assert sorted(own.values()) == sorted(result[result > 0].tolist())


@every_trace
def test_operators_below_layers_have_the_numbers_of_the_summary(path: str) -> None:
    opened = profile(path, copies=True)
    if not len(opened):
        pytest.skip("no kernels")
    table = opened.report("summary", by=["op"])
    tree = stacks(opened, "layers", leaves=("op",))
    kinds, names, time = tree.type.array(), tree.name.array(), tree.inclusive("ns")
    result: dict[str, int] = {}
    for row in np.flatnonzero(kinds == "op").tolist():
        result[names[row]] = result.get(names[row], 0) + int(time[row])
    both = zip(*(table.columns[name].array().tolist() for name in ("op", "gpu_ns")), strict=True)
    expected = {op: ns for op, ns in both if op is not None}
    assert result == expected


def test_the_path_of_a_kernel_is_that_of_the_profile() -> None:
    opened: fastprof.Profile = profile("kineto/resnet18_mi300_full.json.gz", copies=True)
    tree, paths = stacks(opened, "path"), opened.paths
    nodes = rows_by(tree, {"kernel"})
    time: dict[tuple[str, ...], int] = {}
    for row in opened.rows():
        chain, path = [row["kernel"]], row["path"]
        while path is not None and path >= 0:
            chain.append(paths.folded.at(path))
            path = int(paths.parent[path])
        names = tuple(chain[::-1]) if len(chain) > 1 else ("(no range)", row["kernel"])
        time[names] = time.get(names, 0) + row["sil"]
    inside = tree.inclusive("ns")
    assert {chain: int(inside[row]) for chain, row in nodes.items()} == time


@every_trace
def test_every_view_of_the_page_has_all_gpu_time(path: str) -> None:
    opened = profile(path, copies=True)
    result = section(PageSource(opened))
    if not len(opened):
        assert result.missing == ["no GPU work in this capture: CPU time only"]
        assert not result.charts
        return
    total, (chart,) = opened.report("summary").total, result.charts
    views = chart.data["views"]
    assert len(views) >= 1
    for i, view in enumerate(views):
        arrays = {name: chart.arrays[f"{name}{i}"] for name in ("at", "parent", "name", "ns")}
        assert arrays["ns"].sum() == total["gpu_ns"]
        assert chart.arrays[f"kernels{i}"].sum() == len(opened)
        assert arrays["at"].max() < 3 * len(arrays["parent"])
        assert arrays["name"].max() < len(view["names"])
    titles = [view["title"] for view in views]
    assert ("Operators" in titles) == ("Layers" not in titles)
    _, table = result.tables[0]
    assert table["gpu_ns"][0] == max(table["gpu_ns"])
