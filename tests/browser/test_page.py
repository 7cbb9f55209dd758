"""The page that `fastprof report` writes, in Chromium."""

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.model.numbers import quantity
from support.hostile_names import NAMES, hostile_trace
from support.hypothesis_profiles import some
from support.rank_files import run as write_ranks

Report = tuple[fastprof.Profile, Path]


def table(page: Any, caption: str) -> Any:
    """The table of a caption, with its search field and buttons."""
    return page.locator(".table").filter(has=page.get_by_role("heading", name=caption, exact=True))


def column(of: Any, name: str) -> list[str]:
    """The visible cells of a column."""
    headers = of.locator("thead th").all_inner_texts()
    place = [header.split(" ")[0].strip() for header in headers].index(name)
    return list(of.locator(f"tbody td:nth-child({place + 1})").all_inner_texts())


def values(of: Any, name: str) -> list[float]:
    """The raw numbers of the visible cells of a column."""
    headers = of.locator("thead th").all_inner_texts()
    place = [header.split(" ")[0].strip() for header in headers].index(name)
    cells = of.locator(f"tbody td:nth-child({place + 1})").all()
    return [float(cell.get_attribute("data-value")) for cell in cells]


def test_the_page_opens_from_disk(report: Report, open_page: Any) -> None:
    page = open_page(report[1])
    assert page.title() == "net.sqlite · fastprof"
    assert page.locator("h1").inner_text() == "net.sqlite"
    assert page.locator("main section").count() >= 3
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1, landmark


def test_columns_sort(report: Report, open_page: Any) -> None:
    profile, path = report
    of = table(open_page(path), "Operators")
    numbers = profile.summary().sort("kernels")["kernels"].tolist()
    button = of.get_by_role("button", name="kernels")
    button.click()
    assert values(of, "kernels") == numbers[:12]
    header = button.locator("xpath=..")
    assert header.get_attribute("aria-sort") == "descending"
    button.press("Enter")
    assert values(of, "kernels") == sorted(numbers)[:12]
    assert header.get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert header.get_attribute("aria-sort") is None
    assert values(of, "gpu") == profile.summary()["gpu_ns"].tolist()[:12]


def test_texts_sort_ascending_and_unknown_numbers_last(report: Report, open_page: Any) -> None:
    profile, path = report
    of = table(open_page(path), "Operators")
    of.get_by_role("button", name="op", exact=True).click()
    ops = [each for each in profile.summary()["op"].tolist() if each is not None]
    assert column(of, "op") == sorted(ops)[:12]
    of.get_by_role("button", name="roof").click()
    of.get_by_role("button", name="Show").click()
    shown = column(of, "roof")
    assert "na" in shown
    assert "na" not in shown[: shown.index("na")]
    assert set(shown[shown.index("na") :]) == {"na"}


def test_search_shows_the_rows_with_all_words(report: Report, open_page: Any) -> None:
    profile, path = report
    of = table(open_page(path), "Operators")
    of.get_by_role("searchbox").fill("FPROP norm")
    ops = [
        row["op"]
        for row in profile.summary().rows()
        if row["dir"] == "fprop" and "norm" in row["op"]
    ]
    assert column(of, "op") == ops
    n = profile.summary().n_rows
    assert of.get_by_role("status").inner_text() == f"{len(ops)} of {n} rows match"
    of.get_by_role("searchbox").fill("no such operator")
    assert column(of, "op") == []


def test_more_rows_are_shown_on_request(report: Report, open_page: Any) -> None:
    profile, path = report
    of = table(open_page(path), "Operators")
    n = profile.summary().n_rows
    button = of.get_by_role("button", name="Show")
    assert button.inner_text() == f"Show the other {n - 12} rows"
    button.click()
    assert of.locator("tbody tr").count() == n
    assert not button.is_visible()


def test_a_link_keeps_sort_and_search_of_tables(report: Report, open_page: Any) -> None:
    page = open_page(report[1])
    of = table(page, "Operators")
    of.get_by_role("columnheader", name="calls").get_by_role("button").click()
    of.get_by_role("searchbox").fill("conv")
    page.wait_for_timeout(200)
    rows, address = of.locator("tbody tr").all_inner_texts(), page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-ready]", state="attached")
    assert table(page, "Operators").locator("tbody tr").all_inner_texts() == rows
    page.get_by_role("link", name="Roofline").first.click()
    page.wait_for_timeout(200)
    assert page.url.split("#")[1].startswith("roofline&") and "find=conv" in page.url


def test_layers_fold(report: Report, open_page: Any) -> None:
    profile, path = report
    of = table(open_page(path), "Layers")
    depths = profile.layers()["depth"].tolist()
    folds = of.get_by_role("button", name="Fold", exact=False)
    assert of.locator("tbody tr").count() == len(depths) <= 40
    first = folds.first
    assert first.get_attribute("aria-expanded") == "true"
    first.click()
    inside = next(i for i, depth in enumerate(depths[1:], 1) if depth <= depths[0]) - 1
    assert of.locator("tbody tr").count() == len(depths) - inside
    focused = of.locator(":focus")
    assert focused.get_attribute("aria-expanded") == "false"
    focused.press("Enter")
    assert of.locator("tbody tr").count() == len(depths)


def test_steps_are_selected_with_the_keyboard(report: Report, open_page: Any) -> None:
    profile, path = report
    steps = profile.steps()
    page = open_page(path)
    canvas = page.get_by_role("img", name="Stacked bars")
    canvas.focus()
    canvas.press("ArrowRight")
    canvas.press("ArrowRight")
    line = page.locator(".bars .selected").inner_text()
    wall = quantity(int(steps["wall_ns"][1]), "ns").replace("us", "µs")
    assert line.startswith(f"step {steps['step'][1]}: {wall} · compute: ")
    canvas.press("Escape")
    assert page.locator(".bars .selected").inner_text() == ""


def test_the_pointer_shows_the_parts_of_a_step(report: Report, open_page: Any) -> None:
    profile, path = report
    page = open_page(path)
    page.get_by_role("img", name="Stacked bars").hover()
    shown = page.locator(".tooltip").inner_text().splitlines()
    row = next(row for row in profile.steps().rows() if shown[0].startswith(f"step {row['step']}:"))
    assert f"compute: {quantity(row['compute_ns'], 'ns')}" in shown[1].replace("µs", "us")


def test_keyboard_reaches_the_content_first(report: Report, open_page: Any) -> None:
    page = open_page(report[1])
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"


def test_the_theme_is_that_of_the_system_until_chosen(report: Report, open_page: Any) -> None:
    page = open_page(report[1], color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(17, 19, 22)"
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(ground) == "rgb(251, 251, 250)"
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Use dark colours").click()
    assert page.evaluate(ground) == "rgb(17, 19, 22)"


def test_print_is_light(report: Report, open_page: Any, tmp_path: Path) -> None:
    page = open_page(report[1], color_scheme="dark")
    page.evaluate("addEventListener('beforeprint', () => { window.printed = true; })")
    page.evaluate(
        "addEventListener('beforeprint', () => {"
        " window.theme = document.documentElement.dataset.theme; })"
    )
    page.pdf(path=tmp_path / "net.pdf")
    assert page.evaluate("[window.theme, document.documentElement.dataset.theme]") == [
        "light",
        "dark",
    ]


@pytest.mark.parametrize("width", some([380, 900, 1600], 3))
def test_the_page_is_as_wide_as_the_window(report: Report, open_page: Any, width: int) -> None:
    page = open_page(report[1], viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_controls_have_names(report: Report, open_page: Any) -> None:
    page = open_page(report[1])
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, input, canvas, a, [role=region]')]
           .filter((each) => !each.closest('[aria-hidden=true], [role=application][aria-label]'))
           .filter((each) => !each.textContent.trim() && !each.getAttribute('aria-label'))
           .map((each) => each.outerHTML)"""
    )
    assert unnamed == []


def test_hostile_names_do_nothing(tmp_path: Path, open_page: Any) -> None:
    profile = fastprof.open(hostile_trace(tmp_path / "trace.json"))
    profile.report().save(tmp_path / "trace.html")
    page = open_page(tmp_path / "trace.html")
    assert page.evaluate("document.querySelectorAll('img, svg, bdo').length") == 0
    of = table(page, "Operators")
    of.get_by_role("searchbox").fill("onerror")
    assert column(of, "op") == [NAMES[0], f"{NAMES[0]}1", f"{NAMES[0]}2"]
    assert page.evaluate("document.querySelectorAll('img, svg, bdo').length") == 0


def test_the_page_works_in_a_frame(report: Report, open_page: Any, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    shown = report[0].report()._repr_html_()
    notebook.write_text(f"<!doctype html><html data-ready>{shown}</html>", encoding="utf-8")
    page = open_page(notebook)
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for(state="attached")
    frame.get_by_role("link", name="Tables").click()
    assert frame.locator("#tables h2").is_visible()
    assert frame.locator("h1").inner_text() == "net.sqlite"


def test_ranks_show_their_time(tmp_path: Path, open_page: Any) -> None:
    write_ranks(tmp_path / "run", 3, slow=1)
    batch = fastprof.batch(tmp_path / "run")
    batch.report().save(tmp_path / "ranks.html")
    page = open_page(tmp_path / "ranks.html")
    canvas = page.get_by_role("img", name="Stacked bars, one per rank")
    canvas.focus()
    canvas.press("Home")
    canvas.press("ArrowRight")
    time = quantity(int(batch.ranks["gpu_time"][1]), "ns").replace("us", "µs")
    assert page.locator(".bars .selected").inner_text().startswith(f"rank 1: {time} · ")


def test_large_tables_stay_fast(tmp_path: Path, open_page: Any) -> None:
    """10^4 rows: sorting and searching take less than 0.5 s each."""
    import numpy as np

    from fastprof.model.columns import Ints
    from fastprof.model.table import Table, text_column
    from fastprof.page.build import build
    from fastprof.page.section import Section

    n = 10_000
    names = text_column([f"layers.{i % 977}.attention.linear{i}" for i in range(n)])
    numbers = {f"n{i}": Ints(np.random.default_rng(i).integers(0, 10**9, n)) for i in range(8)}
    rows = Table({"name": names, **numbers})
    path = tmp_path / "large.html"
    path.write_text(build("large", [], [Section("s", "S", tables=[("Rows", rows)])]))
    page = open_page(path)
    seconds = page.evaluate(
        """() => {
            const begin = performance.now();
            for (const action of [
              () => document.querySelectorAll("th button")[3].click(),
              () => {
                const input = document.querySelector("input");
                input.value = "attention linear99";
                input.dispatchEvent(new Event("input"));
              },
            ]) { action(); document.body.offsetHeight; }
            return (performance.now() - begin) / 1000;
        }"""
    )
    assert table(page, "Rows").get_by_role("status").inner_text() == "111 of 10,000 rows match"
    assert seconds < 1
