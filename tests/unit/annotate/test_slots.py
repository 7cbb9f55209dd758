"""The C type slots of tensors: C code gets the same results with and after init."""

import ast
import functools
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("nvtx")

import fastprof
from support import torch_server
from support.annotation_modes import TOOL, listening

PROGRAM = Path(__file__).resolve().with_name("annotation_expressions.py")


@functools.cache
def told(situation):
    done = torch_server.run(PROGRAM, situation, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("situation", ["on", "profiled", "off"])
def test_expressions_come_to_the_same_as_in_a_process_without_fastprof(situation):
    plain, result = told("never")["expressions"], told(situation)["expressions"]
    assert len(plain) > 400
    assert {each: result[each] for each in plain if result[each] != plain[each]} == {}


@pytest.mark.parametrize("situation", ["on", "profiled", "off"])
def test_no_slot_is_filled_or_emptied(situation):
    plain, result = told("never")["slots"], told(situation)["slots"]
    assert set(plain) == {"TensorBase", "Tensor", "Parameter", "Before", "Late"}
    for kind, slots in plain.items():
        # x[i] uses mp_subscript; sq_item makes a type a sequence.
        assert slots["as_mapping[1]"] and not slots.get("as_sequence[3]"), kind
        assert result[kind] == slots, kind


def test_a_tensor_is_no_sequence():
    with fastprof.init():
        assert torch.tensor([torch.tensor(1.0), 2.0]).tolist() == [1.0, 2.0]
    assert torch.tensor([torch.tensor(1.0), 2.0]).tolist() == [1.0, 2.0]


def indexing(heard):
    """The markers of indexing, as (op, number of arguments)."""
    markers = [marker for text in heard.texts() if (marker := read(text))]
    return [(marker["op"], len(marker["args"])) for marker in markers]


def read(text):
    marker = ast.literal_eval(text)
    return marker if marker.get("op") in ("__getitem__", "__setitem__") else None


class Early(torch.Tensor):
    """A subclass defined before init."""


def test_indexing_has_markers_in_all_subclasses_and_none_after_uninit():
    x, early = torch.ones(3, 3), torch.ones(3, 3).as_subclass(Early)
    weight = torch.nn.Parameter(torch.ones(3))
    with fastprof.init():

        class Late(torch.Tensor):
            pass

        late = torch.ones(3).as_subclass(Late)
        for tensor in (x, early, weight, late):
            with listening(TOOL) as heard:
                tensor[1]
                tensor.data[0] = 2
            # The subclass receives the call by __torch_function__ and repeats it.
            assert set(indexing(heard)) == {("__getitem__", 2), ("__setitem__", 3)}, type(tensor)
        with listening(TOOL) as heard:
            torch.Tensor.__getitem__(x, slice(None))
        assert indexing(heard) == [("__getitem__", 2)]
    for tensor in (x, early, weight, late):
        with listening(TOOL) as heard:
            tensor[1]
        assert heard.texts() == []


def test_an_index_that_raises_ends_its_ranges_and_keeps_the_error(heard):
    x = torch.ones(3)
    with pytest.raises(IndexError, match="out of bounds"):
        x[7]
    with pytest.raises(IndexError, match="out of bounds"):
        x[7] = 1
    with pytest.raises((TypeError, NotImplementedError)):
        del x[0]


def test_what_a_program_sets_itself_stays():
    class Own(torch.Tensor):
        def __getitem__(self, index):
            return "own", index

    own = torch.ones(2).as_subclass(Own)
    with fastprof.init():
        assert own[1] == ("own", 1)
        Own.__setitem__ = lambda self, index, value: self.add_(value)
        own[0] = 2
    assert own[1] == ("own", 1) and own.as_subclass(torch.Tensor).tolist() == [3.0, 3.0]
    own[0] = 1
    assert own.as_subclass(torch.Tensor).tolist() == [4.0, 4.0]
