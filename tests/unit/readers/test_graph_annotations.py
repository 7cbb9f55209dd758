"""Files with annotations of CUDA graphs: pickles of plain data, JSON, and others."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fastprof.errors import BadInputError
from fastprof.readers.graph_annotations import read

NODE = (9 << 32) | 5


def annotations() -> defaultdict[int, list[Any]]:
    result: defaultdict[int, list[Any]] = defaultdict(list)
    result[NODE] += [{"name": "linear", "layer": 0}, "text"]
    return result


def test_pickles_and_json_have_the_pairs_of_each_node(tmp_path: Path) -> None:
    pairs = {"name": "linear", "layer": "0", "annotation": "text"}
    for data in (
        pickle.dumps(annotations()), pickle.dumps(dict(annotations()), 2),
        json.dumps(annotations()).encode(),
    ):  # fmt: skip
        path = tmp_path / "annotations"
        path.write_bytes(data)
        ((node, text),) = read(path).items()
        assert node == NODE and json.loads(f"{{{text}}}") == pairs


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("ran",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps({1: [Harmful()]}), "refused, since it imports builtins.print"),
        (pickle.dumps([1]), "expected annotations of CUDA graphs"),
        (b"{}", "expected annotations of CUDA graphs"),
        (b"{1", "expected annotations of CUDA graphs"),
        (b"nothing", "expected a pickle of plain data"),
        (pickle.dumps(dict(annotations()))[:-5], "expected a pickle of plain data"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, data: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(data)
    with pytest.raises(BadInputError, match=message):
        read(path)
    assert capsys.readouterr().out == ""


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        read(tmp_path / "none")
