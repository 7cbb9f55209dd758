"""Annotations of nodes of CUDA graphs: layers and collectives by their fields."""

from __future__ import annotations

import json

import pytest

from fastprof.model.markers.annotations import module_path, pairs_of, read_annotation


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("layers.0.attention.wq", ("layers.0", "attention", "wq")),
        ("norm", ("norm",)),
        ("blocks.3.1.fc", ("blocks.3.1", "fc")),
        ("0.weight", ("0", "weight")),
        ("", ()),
    ],
)
def test_modules_of_a_qualified_name(name: str, path: tuple[str, ...]) -> None:
    assert module_path(name) == path


@pytest.mark.parametrize("pairs", ["", "{", '"name":', '"name":null', '"name":""'])
def test_damaged_and_empty_annotations_are_none(pairs: str) -> None:
    assert read_annotation(pairs) is None


def test_a_name_of_a_collective_with_its_fields_is_no_layer() -> None:
    note = read_annotation('"name":"all_gather","dtype":"float32","Group size":"4"')
    assert note is not None and note.layers == ()
    assert note.collective is not None and note.collective.ranks == 4


def test_a_name_of_a_collective_alone_is_a_layer() -> None:
    note = read_annotation('"name":"reduce"')
    assert note is not None and note.collective is None and note.layers == ("reduce",)


def test_later_annotations_of_a_node_win() -> None:
    assert json.loads(f"{{{pairs_of([{'a': 1, 'b': 2}, {'a': 3}, 'x'])}}}") == {
        "a": "3", "b": "2", "annotation": "x",
    }  # fmt: skip
