"""The time line of a page in Chromium: what it shows against the time lines of Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from browser.conftest import page_with
from fastprof.analysis.timeline.build import StepTimeline, StepTimelines
from fastprof.page.sections import timeline as section
from support.hypothesis_profiles import some
from support.kineto_files import KinetoFile
from support.step_timelines import Row, rows

US = 1000
HOSTILE = "</script><img src=x onerror=alert(1)><!-- ]]>\u2028\u202e"
CHART = ".timeline"
Show = Callable[..., Any]


class Shown:
    """The time line of an open page."""

    def __init__(self, page: Any) -> None:
        self.page, self.chart = page, page.locator(CHART)
        self.area = page.locator(".timeline-scroll")
        self.area.scroll_into_view_if_needed()

    @property
    def view(self) -> tuple[float, float]:
        """The times at the edges, ns."""
        self.page.wait_for_timeout(30)
        return tuple(float(self.chart.get_attribute(f"data-{name}")) for name in ("from", "to"))  # type: ignore[return-value]  # a pair

    @property
    def selected(self) -> tuple[str, int, int] | None:
        """Title, start and length in ns of the selected event."""
        detail = self.page.locator(".timeline-detail")
        start, length = (detail.get_attribute(f"data-{name}") for name in ("start", "length"))
        title = detail.locator(".timeline-text div").first.inner_text()
        return None if start is None else (title, int(start), int(length))

    @property
    def text(self) -> str:
        return self.page.locator(".timeline-text").inner_text()

    def press(self, *keys: str) -> None:
        self.area.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def place(self, kind: str, time: int) -> tuple[float, float]:
        """The point of a time in the first lane of a kind, in pixels of the viewport."""
        box = self.page.locator(".timeline-over").bounding_box()
        left = 96 if box["width"] >= 698 else 0
        begin, end = self.view
        x = box["x"] + left + (time - begin) / (end - begin) * (box["width"] - left)
        # The axis, the header of the GPU, idle time and, without a gutter, the name of the stream.
        y = box["y"] + 22 + 20 + {"idle": 7, "work": 16 + (0 if left else 14) + 11}[kind]
        return x, y


@pytest.fixture(scope="module")
def report(report: tuple[fastprof.Profile, Path]) -> tuple[StepTimelines, Path]:
    """The time lines of a generated capture, and a page with them."""
    return StepTimelines(report[0]), page_with(
        report[1].with_name("timeline.html"), report[0], section.section
    )


def median(timelines: StepTimelines) -> StepTimeline:
    return timelines.between(timelines.choices()[0].window)


def work_of(timelines: StepTimelines) -> list[Row]:
    return rows(median(timelines), "work")


def test_the_first_view_is_the_median_step(report, open_page):
    shown = Shown(open_page(report[1]))
    window = report[0].choices()[0].window
    assert shown.view == (0, window.end - window.start)
    assert "median" in shown.page.locator(f"{CHART} select option").first.inner_text()
    assert shown.selected is None


@pytest.mark.parametrize("width", some([380, 900, 1600], 3))
def test_a_click_selects_the_kernel_at_the_pointer(report, open_page, width):
    shown = Shown(open_page(report[1], viewport={"width": width, "height": 900}))
    kernel = max(work_of(report[0]), key=lambda each: each.length)
    shown.page.mouse.click(*shown.place("work", kernel.start + kernel.length // 2))
    assert shown.selected[1:] == (kernel.start, kernel.length)


def test_hover_gives_name_time_and_launch(report, open_page):
    shown = Shown(open_page(report[1]))
    timeline = median(report[0])
    kernel = max(rows(timeline, "work"), key=lambda each: each.length)
    shown.page.mouse.move(*shown.place("work", kernel.start + kernel.length // 2))
    text = shown.page.locator(".tooltip").inner_text()
    place = timeline.events.start.tolist().index(kernel.start + timeline.window.start)
    launch = timeline.events.start[timeline.link[place]]
    late = shown.page.evaluate("ns => ns", int(timeline.events.start[place] - launch))
    assert text.splitlines()[0] == timeline.names["work"]["kernel"].at(
        int(timeline.events.what[place])
    )
    assert microseconds(late) in text
    assert microseconds(kernel.length) in text
    shown.page.mouse.move(5, 5)
    assert shown.page.locator(".tooltip").is_hidden()


def microseconds(ns: int) -> str:
    """As the page writes a time: four digits."""
    size, unit = next(
        each for each in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")) if ns >= each[0]
    )
    return f"{float(f'{ns / size:.4g}'):g} {unit}"


def test_the_keyboard_selects_events_in_order(report, open_page):
    shown = Shown(open_page(report[1]))
    expected = work_of(report[0])
    shown.press("ArrowRight")
    result = [shown.selected]
    for _ in range(5):
        shown.press("ArrowRight")
        result.append(shown.selected)
    assert [each[1:] for each in result if each] == [each[:2] for each in expected[:6]]
    shown.press("ArrowLeft")
    assert shown.selected == result[-2]
    shown.press("Escape")
    assert shown.selected is None


def test_enter_zooms_to_the_selected_event_and_escape_shows_all(report, open_page):
    shown = Shown(open_page(report[1]))
    all_of_it = shown.view
    shown.press("ArrowRight", "ArrowRight", "ArrowRight", "Enter")
    _, start, length = shown.selected
    assert shown.view == pytest.approx((start - length / 2, start + 1.5 * length))
    shown.press("Escape", "Escape")
    assert shown.view == all_of_it


def test_keys_and_buttons_zoom_and_pan(report, open_page):
    shown = Shown(open_page(report[1]))
    begin, end = shown.view
    shown.press("+")
    length = (end - begin) / 2
    assert shown.view == pytest.approx((begin + length / 2, end - length / 2))
    shown.press("Shift+ArrowRight")
    assert shown.view == pytest.approx((begin + 0.7 * length, begin + 1.7 * length))
    shown.page.get_by_role("button", name="Zoom out").click()
    assert shown.view == pytest.approx((begin, end))  # stays inside
    shown.press("+", "+")
    shown.page.get_by_role("button", name="Show all of it").click()
    assert shown.view == (begin, end)


def test_the_keys_of_perfetto_zoom_and_pan(report, open_page):
    shown = Shown(open_page(report[1]))
    begin, end = shown.view
    shown.press("w")
    length = (end - begin) / 2
    assert shown.view == pytest.approx((begin + length / 2, end - length / 2))
    shown.press("d")
    assert shown.view == pytest.approx((begin + 0.7 * length, begin + 1.7 * length))
    shown.press("a", "s")
    assert shown.view == pytest.approx((begin, end))
    shown.press("ArrowRight", "f")
    assert shown.selected is not None
    _, start, width = shown.selected
    assert shown.view == pytest.approx((max(start - width / 2, 0), start + 1.5 * width), abs=width)


def test_a_link_shows_the_same_view(report, open_page):
    shown = Shown(open_page(report[1]))
    shown.page.select_option(f"{CHART} select", "1")
    shown.page.get_by_role("searchbox", name="Search the time line").fill("conv")
    shown.press("n", "w")
    shown.page.wait_for_timeout(200)
    view, selected, address = shown.view, shown.selected, shown.page.url
    assert "find=conv" in address and "step=1" in address and selected is not None
    again = Shown(open_page(report[1], java_script_enabled=True))
    again.page.goto("about:blank")
    again.page.goto(address)
    again.page.wait_for_selector("html[data-ready]", state="attached")
    assert again.selected == selected
    assert again.view == pytest.approx(view, abs=1)
    assert again.page.locator(f"{CHART} select").input_value() == "1"
    again.press("0", "Escape")
    again.page.get_by_role("searchbox", name="Search the time line").fill("")
    again.page.wait_for_timeout(200)
    assert again.page.url.endswith("step=1")


def test_an_address_that_does_not_fit_is_ignored(report, open_page):
    page = open_page(report[1])
    whole = Shown(page).view
    chart = page.locator(CHART).get_attribute("id")
    parts = ("step=99", "view=9:1", "event=123456789", "view=x", "find=%E4%BD%A0")
    page.goto("about:blank")
    page.goto(report[1].resolve().as_uri() + "#no&" + "&".join(f"{chart}.{p}" for p in parts))
    page.wait_for_selector("html[data-ready]", state="attached")
    assert Shown(page).view == whole and Shown(page).selected is None


def test_the_wheel_zooms_at_the_pointer(report, open_page):
    shown = Shown(open_page(report[1]))
    _, end = shown.view
    time = round(end / 4)
    shown.page.mouse.move(*shown.place("work", time))
    shown.page.mouse.wheel(0, -500)
    shown.page.wait_for_timeout(50)
    assert shown.view == (0, end)  # the page scrolls
    shown.area.focus()
    shown.area.scroll_into_view_if_needed()
    shown.page.mouse.move(*shown.place("work", time))
    shown.page.mouse.wheel(0, -500)
    begin, finish = shown.view
    assert finish - begin == pytest.approx(end * 2.718281828 ** (-1.5), rel=1e-3)
    assert (time - begin) / (finish - begin) == pytest.approx(0.25, abs=0.01)


def test_dragging_moves_the_view(report, open_page):
    shown = Shown(open_page(report[1]))
    shown.press("+", "+")
    begin, end = shown.view
    x, y = shown.place("work", round((begin + end) / 2))
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x - 100, y, steps=4)
    shown.page.mouse.up()
    box = shown.page.locator(".timeline-over").bounding_box()
    moved = 100 / (box["width"] - 96) * (end - begin)
    assert shown.view == pytest.approx((begin + moved, end + moved), rel=1e-3)
    assert shown.selected is None


def test_a_double_click_zooms_to_the_event(report, open_page):
    shown = Shown(open_page(report[1]))
    kernel = max(work_of(report[0]), key=lambda each: each.length)
    shown.page.mouse.dblclick(*shown.place("work", kernel.start + kernel.length // 2))
    assert shown.view == pytest.approx(
        (kernel.start - kernel.length / 2, kernel.start + 1.5 * kernel.length)
    )


def test_search_counts_matches_and_their_time(report, open_page):
    shown = Shown(open_page(report[1]))
    timeline = median(report[0])
    (name,) = {max(rows(timeline, "work"), key=lambda each: each.length).name}
    every = [row for kind in timeline.names for row in rows(timeline, kind)]
    expected = [row for row in every if row.name and str(name).lower() in row.name.lower()]
    shown.page.get_by_role("searchbox", name="Search the time line").fill(str(name))
    status = shown.page.locator(".timeline-status").inner_text()
    assert status == f"{len(expected):,} matches, {microseconds(sum(r.length for r in expected))}"
    shown.page.keyboard.press("Enter")
    first = min(expected, key=lambda each: each.start)
    assert shown.selected[1:] == first[:2]
    begin, end = shown.view  # zooms to the match
    assert end - begin == pytest.approx(max(17 * first.length, 20), rel=0.01)
    assert begin <= first.start and first.start + first.length <= end
    shown.page.keyboard.press("Enter")
    assert shown.page.locator(".timeline-status").inner_text().startswith("2 of ")
    shown.press("p")
    assert shown.page.locator(".timeline-status").inner_text().startswith("1 of ")
    shown.press("n", "n")
    assert shown.page.locator(".timeline-status").inner_text().startswith("3 of ")


def test_another_step_can_be_chosen(report, open_page):
    shown = Shown(open_page(report[1]))
    choices = report[0].choices()
    place = next(i for i, each in enumerate(choices) if "slowest" in each.title)
    shown.page.select_option(f"{CHART} select", str(place))
    window = choices[place].window
    assert shown.view == (0, window.end - window.start)
    shown.press("ArrowRight")
    assert shown.selected[1:] == rows(report[0].between(window), "work")[0][:2]


def test_buttons_lead_to_the_launch_and_back(report, open_page):
    shown = Shown(open_page(report[1]))
    timeline = median(report[0])
    place = next(
        i for own in timeline.rows for i in range(own.start, own.stop)
        if timeline.forward[i] >= 0
    )  # fmt: skip
    begin = timeline.window.start
    start = int(timeline.events.start[place]) - begin
    n = [row.start for row in rows(timeline, "work")].index(start)
    shown.press(*["ArrowRight"] * (n + 1))
    assert shown.selected is not None and shown.selected[1] == start
    shown.page.get_by_role("button", name="Launch", exact=True).click()
    launch = int(timeline.events.start[timeline.link[place]]) - begin
    assert shown.selected[1] == launch
    shown.page.get_by_role("button", name="Launched work").click()
    assert shown.selected[1] == start
    shown.page.get_by_role("button", name="Forward call").click()
    assert shown.selected[1] == int(timeline.events.start[timeline.forward[place]]) - begin
    assert shown.page.get_by_role("button", name="Backward", exact=True).is_visible()


def test_a_gap_gives_its_causes(report, open_page):
    shown = Shown(open_page(report[1]))
    timeline = median(report[0])
    end = timeline.window.end - timeline.window.start
    gaps = [row for row in rows(timeline, "idle") if row.start + row.length <= end]
    gap = max(gaps, key=lambda each: each.length)
    shown.page.mouse.click(*shown.place("idle", gap.start + gap.length // 2))
    assert shown.selected[1:] == (gap.start, gap.length)
    assert shown.selected[0] == f"idle: {gap.name}, {microseconds(gap.length)}"


def report_of(trace: KinetoFile, folder: Path) -> Path:
    profile = fastprof.open(trace.write(folder / "x.json"), copies=True)
    profile.report().save(folder / "x.html")
    return folder / "x.html"


def test_hostile_names_are_text(tmp_path, open_page):
    trace = KinetoFile().annotation(0, 100 * US, HOSTILE)
    trace.launch(10 * US, 20 * US, corr=1).kernel(30 * US, 90 * US, corr=1, name=HOSTILE)
    shown = Shown(open_page(report_of(trace, tmp_path)))
    shown.press("ArrowRight")
    assert "<img_src=x_onerror=alert(1)>" in shown.text  # a short name has no blanks
    shown.press("ArrowDown")
    assert HOSTILE.split("\u2028")[0] in shown.text
    assert shown.page.locator("img").count() == 0


def test_without_gpu_work_ranges_are_shown(tmp_path, open_page):
    trace = KinetoFile().op(0, 100 * US, "aten::mm").op(10 * US, 50 * US, "aten::add")
    shown = Shown(open_page(report_of(trace, tmp_path)))
    assert "No GPU work is recorded" in shown.page.locator("#time-line .missing").inner_text()
    shown.press("ArrowRight", "ArrowDown")
    assert shown.selected == ("aten::add", 10 * US, 40 * US)


def test_without_a_host_side_the_page_tells_what_to_record(tmp_path, open_page):
    trace = KinetoFile().kernel(0, 90 * US, corr=1)
    page = open_page(report_of(trace, tmp_path))
    missing = page.locator("#time-line .missing").inner_text()
    assert "No API calls are recorded" in missing
    assert "No ranges are recorded" in missing
    assert Shown(page).view == (0, 90 * US)


@pytest.mark.parametrize("scheme", some(["light", "dark"], 2))
def test_merged_events_give_their_number(report, open_page, tmp_path, scheme, monkeypatch):
    monkeypatch.setattr(section, "EVENTS", 300)
    profile = report[0].profile
    profile.report().save(tmp_path / "x.html")
    shown = Shown(open_page(tmp_path / "x.html", color_scheme=scheme))
    line = report[0].between(report[0].choices()[0].window, 300)
    own = line.rows[[lane.kind for lane in line.lanes].index("work")]
    place = own.start + int(line.events.counts[own].argmax())
    shown.press(*["ArrowRight"] * (place - own.start + 1))
    assert shown.selected[0].startswith(f"{line.events.counts[place]:,} events")
    assert shown.selected[1] == line.events.start[place] - line.window.start


def test_gaps_are_not_painted(report, open_page):
    shown = Shown(open_page(report[1]))
    _, end = shown.view
    idle = [row for row in rows(median(report[0]), "idle") if 0 < row.start < end * 0.9]
    gap = max(idle, key=lambda each: each.length)
    kernel = max(work_of(report[0]), key=lambda each: each.length)
    shown.page.mouse.dblclick(*shown.place("idle", gap.start + gap.length // 2))
    begin, end = shown.view
    assert end - begin == pytest.approx(2 * gap.length)
    assert pixel(shown, "work", gap) in (color(shown, "surface"), color(shown, "line"))
    assert pixel(shown, "idle", gap) == color(shown, f"cause-{gap.name}")
    shown.press("0")
    shown.page.mouse.dblclick(*shown.place("work", kernel.start + kernel.length // 2))
    assert pixel(shown, "work", kernel) not in (color(shown, "surface"), color(shown, "line"))
    assert pixel(shown, "idle", kernel) == color(shown, "busy-compute")


def pixel(shown: Shown, kind: str, event: Row) -> str:
    """The colour at the middle of an event."""
    x, y = shown.place(kind, event.start + event.length // 2)
    box = shown.page.locator(".timeline-over").bounding_box()
    script = """([x, y]) => {
        const canvas = document.querySelector(".timeline-stage canvas");
        const [r, g, b] = canvas.getContext("2d").getImageData(x, y, 1, 1).data;
        return "#" + [r, g, b].map((each) => each.toString(16).padStart(2, "0")).join("");
    }"""
    # Texts begin at the left and reach the middle: look above them.
    return str(shown.page.evaluate(script, [x - box["x"], y - box["y"] - 5]))


def color(shown: Shown, name: str) -> str:
    return str(
        shown.page.evaluate(
            "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()",
            f"--{name.replace(' ', '-').replace('/', '-')}",
        )
    )
