"""The HTML page: its policy, its data, names from traces, missing data, and its output."""

import base64
import hashlib
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof.analysis.idle.causes import CAUSES
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.page import Page
from fastprof.model.table import Floats, Table, text_column
from fastprof.page.build import asset
from fastprof.page.ranks import page_of_ranks
from fastprof.page.table import packed, table_html
from support.commands import run
from support.exports import Export
from support.hostile_names import NAMES, hostile_trace
from support.pages import Parsed, parsed, unpacked
from support.rank_files import run as write_ranks


@pytest.fixture(scope="module")
def page(profile: fastprof.Profile) -> Parsed:
    return parsed(profile.report().html)


# Policy and structure


def test_the_policy_allows_the_scripts_and_styles_of_the_page_only(page):
    policy = page.attributes("meta")[1]["content"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["script-src"].split() == list(map(digest, page.scripts))
    assert rules["style-src"].split() == list(map(digest, page.styles))


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_nothing_needs_what_the_policy_forbids(page):
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on")], tag
        for name in ("src", "href", "action"):
            assert re.match("(#|data:,|$)", attributes.get(name, "")), attributes


def test_links_lead_to_elements(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = [attribute["href"][1:] for attribute in page.attributes("a")]
    assert {"main", "answer", "tables", "recorded"} <= set(links) <= set(ids)


def test_headings_are_in_order(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


# Data


def test_packed_data_and_arrays_are_read_back():
    arrays = {
        "bytes": np.arange(5, dtype=np.uint8),
        "floats": np.array([0.1, np.nan, np.inf]),
        "none": np.empty(0, np.int32),
    }
    data, result = unpacked(packed({"a": [1, "é", None], "b": np.int64(2**53)}, arrays))
    assert data == {"a": [1, "é", None], "b": 2**53}
    assert list(result) == list(arrays)
    for name, array in arrays.items():
        assert result[name].dtype == array.dtype
        np.testing.assert_array_equal(result[name], array)


def test_numbers_that_json_lacks_become_null():
    data, _ = unpacked(packed({"x": [float("nan"), -float("inf"), np.float32(1.5)]}, {}))
    assert data == {"x": [None, None, 1.5]}


def test_control_characters_become_spaces():
    data, _ = unpacked(packed(["a\x00b\u202ec\u2028d", "\\u0000", "\\\x01", "tab\t"], {}))
    assert data == ["a b c d", "\\u0000", "\\ ", "tab\t"]


@pytest.mark.parametrize("array", [np.zeros(2, np.int64), np.zeros((2, 2), np.int32)])
def test_arrays_that_scripts_cannot_read_are_rejected(array):
    with pytest.raises(TypeError, match=r"expected one dimension of .*; found"):
        packed({}, {"x": array})


@pytest.mark.parametrize(
    "report, options, number",
    [("summary", {}, 1), ("layers", {}, 2), ("lines", {}, 3), ("idle", {}, 6), ("steps", {}, 7)],
)
def test_tables_have_the_rows_of_the_reports(profile, page, report, options, number):
    table = profile.report(report, **options)
    rows = page.rows(f"tables-table-{number}")
    assert len(rows) == table.n_rows > 0
    for result, expected in zip(rows, table.rows(), strict=True):
        assert result == {name: expected[name] for name in result}


def test_the_first_rows_need_no_script():
    table = Table(
        {"op": text_column(["mm", None]), "ns": Ints(np.array([1_500_000, -1]))},
        (Heading("op", "operator"), Heading("ns", "time", "ns")),
        total={"ns": 1_500_000},
    )
    html = table_html("t", "Times", table)
    assert '<th scope="col" class="number" title="">time <span class="unit">ms</span></th>' in html
    assert '<td><bdi>mm</bdi></td><td class="number" data-value="1500000">1.500</td>' in html
    assert '<td class="unknown">na</td><td class="number unknown">na</td>' in html
    assert "<tfoot><tr><td>total</td>" in html


def test_the_lead_is_prose_without_blocks_of_columns():
    table = Table({"n": Ints(np.array([1]))}, lead=("one step", "a  b", "", "... 4 more rows"))
    text = parsed(table_html("t", "Rows", table)).text
    assert "one step" in text
    assert "a  b" not in text and "more rows" not in text


def test_rows_over_the_limit_are_counted_with_their_time():
    n = 10_003
    ns = np.full(n, 1000)
    table = Table(
        {"op": text_column([f"op{i}" for i in range(n)]), "gpu_ns": Ints(ns)},
        (Heading("op", "op"), Heading("gpu_ns", "gpu", "ns")),
        total={"gpu_ns": int(ns.sum())},
    )
    trace = parsed(table_html("t", "Many", table))
    assert len(trace.rows("t")) == 10_000
    assert "The page has 10,000 of 10,003 rows; gpu of the other 3: 3 us" in trace.text


def test_shares_and_floats_keep_their_digits():
    table = Table({"share": Floats(np.array([1 / 3, np.nan]))}, (Heading("share", "x", "share"),))
    assert parsed(table_html("t", "Shares", table)).rows("t") == [{"share": 1 / 3}, {"share": None}]


# Names from traces


def test_hostile_names_are_text(tmp_path):
    trace = hostile_trace(tmp_path / "a<b>&.json")
    html = fastprof.open(trace).report().html
    result = parsed(html)
    assert {tag for tag, _ in result.tags} <= {
        *("html", "head", "meta", "title", "link", "style", "script", "body", "a", "header", "nav"),
        *("ul", "li", "button", "main", "h1", "h2", "h3", "noscript", "p", "section", "dl", "div"),
        *("dt", "dd", "progress", "figure", "figcaption", "article", "span", "table", "caption"),
        *("thead", "tbody", "tfoot", "tr", "th", "td", "bdi", "code", "footer", "canvas"),
        *("details", "summary"),
    }
    names = {row["op"] for row in result.rows(table_named(result, "Operators"))}
    assert {NAMES[0], NAMES[1], NAMES[2]} <= names
    assert max(map(len, names)) == 1000
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\ud800-\udfff]", html)
    assert len(html) < 1_500_000  # names of 100 kB are cut


def table_named(page: Parsed, caption: str) -> str:
    """The id of the table with a caption."""
    names = [
        attribute["id"] for attribute in page.attributes("div") if attribute.get("class") == "table"
    ]
    captions = [
        attribute["aria-label"]
        for attribute in page.attributes("div")
        if attribute.get("class") == "scroll"
    ]
    return dict(zip(captions, names, strict=True))[caption]


def test_the_file_name_is_text(tmp_path):
    path = tmp_path / os.fsdecode(b"<i>\xff.sqlite")
    generate(path, 100)
    html = fastprof.open(path).report().html
    assert "<h1>&lt;i&gt; .sqlite</h1>" in html
    html.encode()


# Missing data


def test_dict_lines_say_what_they_lack(profile, tmp_path):
    lines = tmp_path / "net.dict"
    assert run("parse", profile.name, "-o", lines, cwd=tmp_path).returncode == 0
    trace = parsed(fastprof.open(lines).report().html)
    assert "dict lines contain no times" in trace.text
    assert "Causes of idle time, Collectives: dict lines contain no times" in trace.text
    assert len(trace.rows(table_named(trace, "Operators"))) > 5


def test_a_capture_without_gpu_work_says_what_to_record(tmp_path):
    export = Export().write(tmp_path / "empty.sqlite")
    trace = parsed(fastprof.open(export).report().html)
    assert "no kernels" in trace.text
    assert "nsys profile -t cuda" in trace.text


def test_a_capture_without_steps_says_how_to_record_them(tmp_path):
    out = Export()
    for i in range(3):
        out.launch(i * 100, i * 100 + 5, corr=i + 1, tid=1)
        out.kernel(i * 100 + 10, i * 100 + 50, corr=i + 1, name=f"k{i}")
    trace = parsed(fastprof.open(out.write(tmp_path / "one.sqlite")).report().html)
    assert "No steps found" in trace.text


# Notebooks, output, command


def test_report_without_a_name_is_the_page(profile, tmp_path):
    page = profile.report()
    assert isinstance(page, Page)
    shown = parsed(page._repr_html_())
    (frame,) = shown.attributes("iframe")
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == page.html
    page.save(tmp_path / "net.html")
    assert (tmp_path / "net.html").read_text(encoding="utf-8") == page.html
    assert isinstance(profile.report("summary"), Table)


def test_the_user_gives_the_peaks(profile):
    assert "of the bf16 peak, 100 TFLOP/s" in parsed(profile.report(peak="bf16=100").html).text


def test_the_command_writes_a_page_beside_the_shell(profile, tmp_path):
    done = run("report", profile.name, cwd=tmp_path)
    assert done.returncode == 0
    page = Path(profile.name).with_suffix(".html").name
    assert f"wrote {page}" in done.stderr.decode()
    assert b"<!doctype html>" in (tmp_path / page).read_bytes()[:20]


@pytest.mark.parametrize(
    "name, page",
    [
        ("a/net.sqlite", "net.html"),
        ("w0.123.pt.trace.json.gz", "w0.123.html"),
        ("trace.json", "trace.html"),
        ("net.v2", "net.v2.html"),
        (".json", ".json.html"),
    ],
)
def test_the_page_has_the_name_of_the_trace(name, page):
    from fastprof.cli.report import default_output

    assert default_output(name) == page


def test_ranks_are_compared(tmp_path):
    write_ranks(tmp_path / "run", 4)
    batch = fastprof.batch(tmp_path / "run", copies=True)
    trace = parsed(page_of_ranks(batch).html)
    rows = trace.rows(table_named(trace, "Ranks"))
    assert [row["gpu_time"] for row in rows] == batch.ranks["gpu_time"].tolist()
    data, arrays = unpacked(trace.payloads["ranks-chart-1"])
    by_rank = arrays["values"].reshape(len(data["parts"]), 4).sum(axis=0)
    assert by_rank.tolist() == batch.ranks["gpu_time"].tolist()
    assert trace.rows(table_named(trace, "Collectives"))[0]["ranks"] == 4


def test_the_ranks_of_a_run_have_the_page_of_the_run(tmp_path):
    write_ranks(tmp_path / "run", 4)
    done = run("report", tmp_path / "run", "--each", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = parsed((tmp_path / "ranks.html").read_text(encoding="utf-8"))
    rows = trace.rows(table_named(trace, "Ranks"))
    assert [row["rank"] for row in rows] == fastprof.open_ranks(tmp_path / "run").numbers
    links = {attribute["href"] for attribute in trace.attributes("a")}
    assert {f"./ranks_ranks/rank{number}.html" for number in range(4)} <= links
    assert (tmp_path / "ranks_ranks" / "rank3.html").exists()


def test_unreadable_ranks_are_listed(tmp_path):
    write_ranks(tmp_path / "run", 2)
    (tmp_path / "run" / "rank9.sqlite").write_bytes(b"SQLite format 3\0")
    done = run("report", tmp_path / "run", "-o", tmp_path / "r.html", cwd=tmp_path)
    assert done.returncode == 1
    assert b"1 files could not be read" in done.stderr
    assert "rank9.sqlite" in parsed((tmp_path / "r.html").read_text(encoding="utf-8")).text


# Colours


def test_texts_have_enough_contrast():
    css = (Path(fastprof.__file__).parent / "page" / "assets" / "page.css").read_text()
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root[^{]*\{([^}]*color-scheme[^}]*)\}", css)
    )
    pairs = [
        *(
            (color, ground)
            for color in ("text", "muted")
            for ground in ("page", "surface", "raised")
        ),
        *(("accent", "page"), ("accent", "surface"), ("accent", "accent-soft")),
        *(("warn", "warn-soft"), ("text", "accent-soft")),
    ]
    for theme in (light, {**light, **dark}):
        ratios = {pair: contrast(theme[pair[0]], theme[pair[1]]) for pair in pairs}
        assert {pair: ratio for pair, ratio in ratios.items() if ratio < 4.5} == {}


def contrast(color: str, ground: str) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted(map(luminance, (color, ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_page_has_the_steps_asked_for(trace: Path, tmp_path: Path) -> None:
    done = run("report", "--steps", "none", "-o", tmp_path / "x.html", trace)
    assert done.returncode == 0, done.stderr
    whole = (tmp_path / "x.html").read_text()
    assert fastprof.open(trace).with_steps("none").report().html == whole
    assert fastprof.open(trace).report().html != whole
    done = run("report", "--steps", "DataLoaders", trace)
    assert done.returncode == 1 and b"similar: 'DataLoader'" in done.stderr


def test_every_cause_of_idle_time_has_a_colour() -> None:
    style = asset("page.css")
    for name in (*CAUSES, "other"):
        assert f"--cause-{re.sub('[^a-z0-9]+', '-', name.lower())}:" in style, name
