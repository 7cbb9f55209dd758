"""The format of a file is decided in one place, by content, then by suffix."""

import pytest

import fastprof
from fastprof.errors import BadInputError
from fastprof.readers.detect import FileFormat, detect

SQLITE = b"SQLite format 3\0"
REPORT = b"NVIDIA Tegra Profiler Report 2026@4@1"
LINE = b"{'kShortName': 'a', 'kDuration': 7}\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.sqlite", SQLITE, FileFormat.SQLITE),
        ("a.nsys-rep", SQLITE, FileFormat.SQLITE),
        ("a.dat", REPORT, FileFormat.NSYS_REPORT),
        ("a.nsys-rep", b"\0\1", FileFormat.NSYS_REPORT),
        ("A.QDREP", b"\x1f\x8b", FileFormat.NSYS_REPORT),
        ("a.dat", b"\x1f\x8b", FileFormat.GZIP_JSON),
        ("a.dat", b'\n {"traceEvents": []}', FileFormat.JSON),
        ("a.nsys-rep", b"[", FileFormat.JSON),
        ("a.json", LINE, FileFormat.DICT_LINES),
        ("a.nsys-rep", b"\xef\xbb\xbf" + LINE, FileFormat.DICT_LINES),
    ],
)
def test_content_decides_before_the_suffix(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    assert detect(path).format is expected


def test_a_missing_file_is_reported_as_missing_with_a_graph_capture_too(tmp_path):
    with pytest.raises(BadInputError, match="no such file"):
        fastprof.open(tmp_path / "none.json", graph_capture=[tmp_path / "capture.json"])
