"""docs/coverage.md lists every trace and equals the output of its command."""

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from fastprof.writers.info import describe
from real.open_traces import profile
from support.real_data import data_dir, real, traces

DOCS = Path(__file__).parents[2] / "docs"
TRACES = traces(
    "kineto/*.json.gz",
    "nsys/*.sqlite",
    "nvprof/*",
    "pyprof/*.sql*",
    "rocpd/*.db",
    "rocpd/*.json.gz",
)


@cache
def make_coverage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_coverage", DOCS / "make_coverage.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def directory() -> Path:
    result = data_dir()
    if result is None:
        pytest.skip("no real traces: set FASTPROF_DATA to their directory")
    return result


def listed() -> list[str]:
    return re.findall(r"^\| `(.*?)` \|", (DOCS / "coverage.md").read_text(), re.M)


def test_every_trace_that_is_there_is_in_the_table(directory: Path) -> None:
    assert listed() == TRACES


def test_every_trace_of_the_index_is_in_the_table(directory: Path) -> None:
    index = (directory / "INDEX.md").read_text()
    for cell in re.findall(r"^\| ([\w/.]+(?:, [\w/.]+)*) \|", index, re.M):
        for name in cell.split(", "):
            if name.endswith("/"):  # a folder
                continue
            is_row = "." in name and not name.endswith((".csv", ".dict", "json.gz"))
            if is_row or name.startswith("rocpd/"):
                assert name in listed()
            elif name.endswith(".json.gz"):
                pattern = re.escape(Path(name).name).replace(r"rank0\.\.3", "rank[0-3]")
                assert any(re.fullmatch(f"kineto/{pattern}", each) for each in listed()), name


@pytest.mark.parametrize("path", TRACES)
def test_the_row_of_a_trace_is_in_the_page(path: str) -> None:
    made = make_coverage()
    row = made.row(path, describe(profile(path)), made.repeated(profile(path)))
    assert row in (DOCS / "coverage.md").read_text(), "run: python docs/make_coverage.py"


def test_the_page_is_its_head_and_rows(directory: Path, tmp_path: Path) -> None:
    """Rows of all traces are tested one by one."""
    name = "kineto/triton_compile.json.gz"
    (tmp_path / "kineto").mkdir()
    (tmp_path / name).symlink_to(real(name))
    page = (DOCS / "coverage.md").read_text()
    rows = re.findall(r"^\| `.*\n", page, re.M)
    head = page.removesuffix("".join(rows))
    (row,) = (row for row in rows if f"`{name}`" in row)
    assert make_coverage().page(tmp_path) == head + row, "run: python docs/make_coverage.py"


def test_shares_are_never_rounded_up_to_all() -> None:
    assert [make_coverage().percent(each) for each in (None, 0.0, 0.9996, 1.0, 0.123)] == [
        "-", "0 %", "99.9 %", "100 %", "12.3 %",
    ]  # fmt: skip


def test_a_directory_without_traces_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no traces"):
        make_coverage().page(tmp_path)
