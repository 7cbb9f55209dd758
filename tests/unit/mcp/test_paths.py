"""Which files may be read."""

import os

import pytest

from fastprof.errors import BadInputError
from fastprof.mcp.paths import AllowedFiles


@pytest.fixture
def inside(tmp_path):
    """A directory with a file, beside another one."""
    for name in ("inside", "outside", "inside/deep"):
        (tmp_path / name).mkdir()
    for name in ("inside/a.json", "inside/deep/b.json", "outside/c.json"):
        (tmp_path / name).write_text("[]")
    return tmp_path / "inside"


def test_files_below_the_directories_may_be_read(inside):
    files = AllowedFiles([inside])
    assert files.file("a.json") == files.file(str(inside / "a.json")) == str(inside / "a.json")
    assert files.file("deep/../a.json") == str(inside / "a.json")
    assert files.files(["deep", "a.json"]) == [str(inside / "a.json"), str(inside / "deep/b.json")]


@pytest.mark.parametrize(
    "name",
    [
        *("../outside/c.json", "deep/../../outside/c.json", "absent.json", "", "a.json\0", "~"),
        *("/etc/passwd", "link.json", "folder/c.json", "//etc/passwd", "/proc/self/environ"),
        *("file:///etc/passwd", "a.json/", "a.json/../../outside/c.json"),
    ],
)
def test_other_files_may_not_and_whether_they_exist_is_not_told(name, inside):
    os.symlink(inside.parent / "outside" / "c.json", inside / "link.json")
    os.symlink(inside.parent / "outside", inside / "folder")
    files = AllowedFiles([inside])
    if name == "a.json/":  # a harmless spelling of a file inside
        assert files.file(name) == str(inside / "a.json")
        return
    with pytest.raises(BadInputError, match=r"no such file below|expected the path of a trace"):
        files.file(name)


def test_links_of_directories_of_ranks_must_stay_inside(inside):
    os.symlink(inside.parent / "outside" / "c.json", inside / "deep" / "rank1.json")
    with pytest.raises(BadInputError, match="no such file below"):
        AllowedFiles([inside]).files(["deep"])


def test_directories_devices_and_reports_of_nsys_are_no_traces(inside):
    os.mkfifo(inside / "pipe.json")
    (inside / "net.nsys-rep").write_bytes(b"")
    files = AllowedFiles([inside])
    for name, message in (
        ("deep", "expected a file"),
        ("pipe.json", "expected a file"),
        ("net.nsys-rep", "expected an export, found a report"),
    ):
        with pytest.raises(BadInputError, match=message):
            files.file(name)


def test_the_listing_has_traces_only(inside):
    os.symlink(inside.parent / "outside" / "c.json", inside / "link.json")
    (inside / "notes.txt").write_text("")
    (inside / "schema.sql").write_text("CREATE TABLE x")
    (inside / "net.sql").write_bytes(b"SQLite format 3\0")
    result = AllowedFiles([inside]).listing()
    names = [os.path.relpath(row["file"], inside) for row in result["files"]]
    assert names == ["a.json", "net.sql", "deep/b.json"]
    assert result["n_files"] == 3 and result["is_complete"]


def test_a_directory_must_exist(inside):
    with pytest.raises(BadInputError, match="expected a directory of traces"):
        AllowedFiles([inside / "a.json"])
