"""The icicle of a page in Chromium: what it shows against the Tables."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastprof
from browser.conftest import page_with
from fastprof.analysis.stacks.tree import DIRECTIONS, Stacks, stacks
from fastprof.page.build import build
from fastprof.page.section import Section
from fastprof.page.sections import flame
from support.hypothesis_profiles import IS_FULL, some
from support.kineto_files import KinetoFile
from support.real_data import real

ROW = 20
SMALLEST = 0.02 if IS_FULL else 0.05  # share of a node that the pointer is moved to
US = 1000
HOSTILE = "</script><img src=x onerror=alert(1)><!-- ]]>\u2028\u202e"
Report = tuple[fastprof.Profile, Path]


@pytest.fixture(scope="module")
def report(report: Report) -> Report:
    """A generated capture, and a page with its icicle."""
    return report[0], page_with(report[1].with_name("flame.html"), report[0], flame.section)


def quantity(value: float, unit: str = "") -> str:
    """As the page writes numbers: four digits and the largest fitting unit."""
    units = {
        "": ((1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1, " ns")),
        "FLOP": ((1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1, " ")),
    }[unit]
    size, name = next((unit for unit in units if abs(value) >= unit[0]), units[-1])
    return f"{float(f'{value / size:.4g}'):g}{name}{unit}"


def percent(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}%"


class Shown:
    """The icicle of an open page."""

    def __init__(self, page: Any, tree: Stacks) -> None:
        self.page, self.tree = page, tree
        self.chart = page.locator(".flame")
        self.area = page.locator(".flame-scroll")
        self.area.scroll_into_view_if_needed()
        self.may_move = False  # a zoom has begun
        self.zoom_ms = 30
        self.show(None)

    def show(self, direction: str | None) -> None:
        """Compute the places of all nodes: siblings in order, as wide as their time."""
        width, tree = self.tree.inclusive("ns", direction), self.tree
        self.left, next_ = np.zeros(len(tree)), np.zeros(len(tree))
        for row in range(1, len(tree)):
            above = tree.parent[row]
            self.left[row] = next_[row] = next_[above]
            next_[above] += width[row]
        self.width = width.astype(float)

    def row(self, *chain: str) -> int:
        return next(i for i in range(len(self.tree)) if tuple(self.tree.chain(i)) == chain)

    def point(self, row: int, focus: int = 0) -> tuple[float, float]:
        """The middle of a node, in pixels of the viewport, where `focus` is in view."""
        if self.may_move:
            self.page.wait_for_timeout(self.zoom_ms)
            self.may_move = False
        box = self.page.locator(".flame-over").bounding_box()
        middle = self.left[row] + self.width[row] / 2 - self.left[focus]
        x = box["x"] + middle / self.width[focus] * box["width"]
        top = self.area.evaluate("element => element.scrollTop")
        return x, box["y"] + (len(self.tree.chain(row)) + 0.5) * ROW - top

    def hover(self, row: int, focus: int = 0) -> list[str]:
        """The lines of the tooltip."""
        self.page.mouse.move(*self.point(row, focus))
        return self.page.locator(".tooltip").inner_text().splitlines()  # type: ignore[no-any-return]

    def click(self, row: int, focus: int = 0) -> None:
        self.page.mouse.click(*self.point(row, focus))
        self.may_move = True

    def press(self, *keys: str) -> None:
        self.area.focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.may_move = True

    def choose(self, label: str, value: str) -> None:
        self.chart.get_by_label(label, exact=True).select_option(value)
        self.may_move = True

    def path(self, name: str) -> list[str] | None:
        """The names around the node in view or the selected one, outermost first."""
        result = self.chart.get_attribute(f"data-{name}")
        return None if result is None else result.split("\n") if result else []

    @property
    def detail(self) -> list[str]:
        return self.page.locator(".flame-detail").inner_text().splitlines()  # type: ignore[no-any-return]

    @property
    def status(self) -> str:
        return self.page.locator(".flame-status").inner_text()  # type: ignore[no-any-return]


def shown_of(report: Report, page: Any, kind: str = "layers") -> Shown:
    return Shown(page, stacks(report[0], kind).pruned())


@pytest.mark.parametrize("width", some([380, 900, 1600], 3))
def test_hover_gives_the_numbers_of_layers(report, open_page, width):
    shown = shown_of(report, open_page(report[1], viewport={"width": width, "height": 900}))
    table = report[0].layers()
    total = table.total["gpu_ns"]
    layers = [row for row in table.rows() if row["share"] * width > 8]
    assert len(layers) >= 3
    for layer in layers:
        names = layer["layer"].split(":")
        title, time, parts, counts, *_ = shown.hover(shown.row(*names))
        assert title == names[-1]
        assert time.startswith(
            f"GPU time: {quantity(layer['gpu_ns'])}, {percent(layer['gpu_ns'], total)} of all"
        )
        for name in DIRECTIONS:
            expected = layer[f"{name}_ns"]
            assert (f"{name} {quantity(expected)}" in parts) == (expected > 0)
        if layer["calls"]:
            assert f"{layer['calls']:,} call" in counts
        assert f"{layer['kernels']:,} kernel" in counts
        assert quantity(layer["flops"], "FLOP") in counts
        assert f"lost {quantity(layer['lost_ns'])}" in counts
    shown.page.mouse.move(5, 5)
    assert shown.page.locator(".tooltip").is_hidden()


def test_the_tooltip_gives_the_share_of_the_part_above(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    row = shown.row("images", "conv2d")
    time = shown.tree.inclusive("ns")
    lines = shown.hover(row)
    assert lines[1].endswith(f"{percent(time[row], time[shown.row('images')])} of images")
    assert lines[3].startswith("op · ")


def test_a_click_zooms_and_escape_goes_back(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    outer, inner = shown.row("images"), shown.row("images", "conv2d")
    back = shown.page.get_by_role("button", name="Back to the part")
    assert back.is_disabled()
    shown.click(outer)
    assert shown.path("focus") == shown.path("selected") == ["images"]
    shown.click(inner, outer)
    assert shown.path("focus") == ["images", "conv2d"]
    crumbs = shown.page.locator(".flame-crumbs button")
    assert crumbs.all_inner_texts() == ["all", "images", "conv2d"]
    shown.press("Escape")
    assert shown.path("focus") == ["images"]
    back.click()
    assert shown.path("focus") == []
    assert back.is_disabled()


def test_the_breadcrumb_and_the_rows_above_zoom_out(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    row = shown.row("images", "conv2d")
    shown.click(row)
    assert shown.path("focus") == ["images", "conv2d"]
    x, y = shown.point(row, row)
    shown.page.mouse.click(x, y - ROW)
    assert shown.path("focus") == ["images"]
    shown.page.locator(".flame-crumbs").get_by_role("button", name="all").click()
    assert shown.path("focus") == []


def test_hover_after_a_zoom_is_exact(report, open_page):
    shown = shown_of(report, open_page(report[1], reduced_motion="no-preference"))
    shown.zoom_ms = 260  # a zoom takes 180 ms
    outer = shown.row("images")
    shown.click(outer)
    for row in np.flatnonzero(shown.tree.parent == outer).tolist():
        if shown.width[row] / shown.width[outer] * 1000 < 4:
            continue
        assert shown.hover(row, outer)[0] == shown.tree.chain(row)[-1]


@pytest.mark.parametrize("direction", some(DIRECTIONS, 2))
def test_a_direction_gives_widths_and_shares_of_it(report, open_page, direction):
    shown = shown_of(report, open_page(report[1]))
    shown.choose("Direction", direction)
    shown.show(direction)
    time, total = shown.width, report[0].layers().total[f"{direction}_ns"]
    assert shown.width[0] == total
    layer = int(np.flatnonzero(shown.tree.parent == 0)[time[shown.tree.parent == 0].argmax()])
    line = shown.hover(layer)[1]
    assert line.startswith(
        f"GPU time, {direction}: {quantity(time[layer])}, {percent(time[layer], total)} of all"
    )


def test_other_widths_are_steps_lost_time_and_flops(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    total = report[0].layers().total
    shown.press("ArrowDown")  # selects all
    for measure, text in (
        ("step_ns", f"GPU time per step: {quantity(total['step_ns'])}, 100.0% of all"),
        ("lost_ns", f"Lost time: {quantity(total['lost_ns'])}, 100.0% of all"),
        ("flops", f"FLOPs: {quantity(total['flops'], 'FLOP')}, 100.0% of all"),
        ("ns", f"GPU time: {quantity(total['gpu_ns'])}, 100.0% of all"),
    ):
        shown.choose("Width", measure)
        assert shown.detail[1] == text


def test_search_gives_matches_and_their_share_once(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    tree, time = shown.tree, shown.tree.inclusive("ns")
    fits = ["e" in name.lower() for name in tree.name.array()]
    inside = [i for i in range(len(tree)) if fits[i]]
    outermost = [i for i in inside if not any("e" in each.lower() for each in tree.chain(i)[:-1])]
    assert 0 < len(outermost) < len(inside)
    search = shown.page.get_by_role("searchbox", name="Search names")
    search.fill("E")
    expected = int(time[outermost].sum())
    text = f"{len(inside):,} matches, {quantity(expected)}, {percent(expected, time[0])} of all"
    assert shown.status == text
    search.press("Enter")
    assert shown.status == f"1 of {text}"
    assert shown.path("selected") == tree.chain(inside[0])
    search.press("Enter")
    search.press("Shift+Enter")
    assert shown.path("selected") == tree.chain(inside[0])
    search.fill("no such name")
    assert shown.status == "0 matches, 0 ns, 0.0% of all"
    search.fill("")
    assert shown.status == ""


def test_the_keyboard_moves_zooms_and_reads(report, open_page):
    shown = shown_of(report, open_page(report[1]))
    tree, time = shown.tree, shown.tree.inclusive("ns")
    shown.press("ArrowDown", "ArrowDown")
    children = np.flatnonzero(tree.parent == 0)
    widest = int(children[time[children].argmax()])
    assert shown.path("selected") == tree.chain(widest)
    assert shown.detail == shown.hover(widest)
    order = children[time[children] > 0].tolist()
    at = order.index(widest)
    shown.press("ArrowLeft" if at else "ArrowRight")
    assert shown.path("selected") == tree.chain(order[at - 1 if at else at + 1])
    shown.press("ArrowRight" if at else "ArrowLeft", "Enter")
    assert shown.path("focus") == tree.chain(widest)
    shown.press("ArrowUp", "0")
    assert shown.path("selected") == shown.path("focus") == []
    shown.press("/")
    assert shown.page.evaluate("document.activeElement.type") == "search"


@pytest.mark.parametrize(("view", "kind"), [*enumerate(["layers", "path", "lines", "stack"])])
def test_every_view_has_the_time_of_its_tree(report, open_page, view, kind):
    shown = shown_of(report, open_page(report[1], viewport={"width": 1600, "height": 900}), kind)
    shown.choose("Rows", str(view))
    tree, time = shown.tree, shown.tree.inclusive("ns")
    for row in range(len(tree)):
        if time[row] / time[0] < SMALLEST or len(tree.chain(row)) > 12:
            continue
        title, text, *_ = shown.hover(row)
        assert title == (tree.chain(row) or ["all GPU work"])[-1]
        assert text.startswith(f"GPU time: {quantity(time[row])}, {percent(time[row], time[0])}")


def test_colours_have_a_key(report, open_page):
    shown = shown_of(report, open_page(report[1], color_scheme="dark"))
    shown.choose("Colour", "phase")
    names = shown.page.locator(".flame-swatch").all_inner_texts()
    assert {"forward", "backward", "optimizer", "copy"} <= set(names)
    shown.page.get_by_role("button", name="Use light colours").click()
    assert shown.page.locator(".flame-swatch").all_inner_texts() == names


def test_hostile_names_are_text(tmp_path, open_page):
    trace = KinetoFile().op(0, 100 * US, "aten::mm")
    trace.annotation(0, 100 * US, HOSTILE)
    trace.launch(10 * US, 20 * US, corr=1).kernel(30 * US, 90 * US, corr=1, name=HOSTILE)
    profile = fastprof.open(trace.write(tmp_path / "x.json"), copies=True)
    profile.report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html")
    shown = Shown(page, stacks(profile, "path").pruned())
    shown.press("ArrowDown", "ArrowDown", "ArrowDown", "Enter")
    assert shown.detail[0] == HOSTILE.split("\u2028")[0].replace("1", "*")  # a folded number
    assert page.locator("img").count() == 0
    shown.page.get_by_role("searchbox", name="Search names").fill("<IMG")
    assert "100.0% of all" in shown.status


def test_without_layers_the_views_say_what_to_record(tmp_path, open_page):
    trace = KinetoFile().kernel(0, 90 * US, corr=1)
    fastprof.open(trace.write(tmp_path / "x.json")).report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html")
    missing = page.locator("#where-time-goes .missing").inner_text()
    assert "no layers: profile(with_stack=True)" in missing
    assert "no source lines: profile(with_stack=True)" in missing
    assert page.get_by_label("Rows", exact=True).is_hidden()
    assert page.locator(".flame").is_visible()


def test_without_gpu_work_there_is_no_chart(tmp_path, open_page):
    trace = KinetoFile().op(0, 100 * US, "aten::mm")
    fastprof.open(trace.write(tmp_path / "x.json")).report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html")
    assert "no GPU work" in page.locator("#where-time-goes .missing").inner_text()
    assert page.locator(".flame").count() == 0


def page_of(tree: Stacks, path: Path) -> Path:
    chart = flame.chart_of({"Tree": flame.drawn(tree)})
    path.write_text(build("x", [], [Section("x", "X", charts=[chart])]), "utf-8")
    return path


def made(parent: Any, ns: Any) -> Stacks:
    """A tree with some time and a kernel of each node's own, forward."""
    n = len(parent)
    sums = {name: np.zeros((n, 3), np.int64) for name in stacks_sums()}
    sums["gpu_ns"][:, 0], sums["kernels"][:, 0] = ns, 1
    names = fastprof.model.columns.Values(np.arange(n, dtype=np.int32), [f"n{i}" for i in range(n)])
    types = fastprof.model.columns.Values(np.zeros(n, np.int32), ["op"])
    unknown = fastprof.model.columns.Values(np.full(n, -1, np.int32), ["gemm"])
    return Stacks(parent, names, types, sums, 0, {"phase": unknown, "kind": unknown})


def stacks_sums() -> list[str]:
    counts = [f"n_{name}" for name in ("flops", "bytes", "roof")]
    return [
        "gpu_ns",
        "steps_ns",
        "kernels",
        "calls",
        "flops",
        "bytes",
        "lost_ns",
        *counts,
    ]


@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_a_hundred_thousand_nodes_are_few_rectangles(tmp_path, open_page, shape):
    n = 100_000
    rng = np.random.default_rng(1)
    above = np.arange(n) - rng.integers(1, 40, n) if shape == "deep" else rng.integers(0, 300, n)
    parent = np.minimum(np.maximum(above, 0), np.maximum(np.arange(n) - 1, 0)).astype(np.int32)
    parent[0] = -1
    tree = made(parent, rng.integers(1, 1000, n))
    page = open_page(page_of(tree, tmp_path / "x.html"))
    shown = Shown(page, tree)
    rectangles = int(shown.chart.get_attribute("data-rectangles"))
    box = page.locator(".flame-over").bounding_box()
    assert 0 < rectangles <= box["width"] * math.ceil(box["height"] / ROW)
    shown.press("ArrowDown", "ArrowDown", "Enter")
    time = tree.inclusive("ns")
    children = np.flatnonzero(parent == 0)
    widest = int(children[time[children].argmax()])
    assert shown.path("focus") == tree.chain(widest)
    assert f"GPU time: {quantity(time[widest])}" in shown.detail[1]


def test_layers_of_a_real_trace_are_where_the_table_says(open_page, tmp_path):
    profile = fastprof.open(real("kineto/resnet18_mi300_full.json.gz"), copies=True)
    profile.report().save(tmp_path / "x.html")
    page = open_page(tmp_path / "x.html", viewport={"width": 1600, "height": 900})
    shown, n = Shown(page, stacks(profile).pruned()), 0
    for layer in profile.layers().rows():
        if layer["share"] * 1300 > 4:
            lines = shown.hover(shown.row(*layer["layer"].split(":")))
            assert lines[0] == layer["name"]
            assert lines[1].startswith(f"GPU time: {quantity(layer['gpu_ns'])}, ")
            n += 1
    assert n > 20


def test_the_chart_prints_in_light_colours(report, open_page):
    shown = shown_of(report, open_page(report[1], color_scheme="dark"))
    before = shown.page.evaluate(PIXEL)
    shown.page.emulate_media(media="print")
    shown.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert sum(shown.page.evaluate(PIXEL)) > sum(before)
    assert shown.page.locator(".flame-tools").is_hidden()
    shown.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert shown.page.evaluate(PIXEL) == before


# Red, green and blue of the first row, which is grey.
PIXEL = """[...document.querySelector('.flame-stage canvas').getContext('2d')
           .getImageData(300, 3, 1, 1).data].slice(0, 3)"""
