"""`parse` against PyProf's own dict lines of the same run.

The run was recorded by NVProf: a real PyTorch 1 training step, forward and backward.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

from fastprof.cli import main
from support.real_data import real

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Line, Line]]:
    """Pairs of our line and PyProf's line, one per kernel."""
    folder = tmp_path_factory.mktemp("parse")
    source = real("pyprof/lm_v100_nvprof.sql")
    assert main(["parse", str(source), "-o", str(folder / "lm.dict")]) == 0
    ours = _read(folder / "lm.dict")
    theirs = _read(real("pyprof/lm_v100_nvprof.author.dict"))
    assert len(ours) == len(theirs) == 160
    return list(zip(ours, theirs, strict=True))


def _read(path: Path) -> list[Line]:
    return [ast.literal_eval(line) for line in path.read_text().splitlines()]


# kLongName: demanglers differ. seqId, altSeqId, subSeqId: below.
# dir: below.
EXACT = ["kShortName", "kDuration", "layer", "trace", "reprMarkers", "marker", "seqMarker"]
EXACT += ["mod", "op", "tid", "device", "stream", "grid", "block"]


@pytest.mark.parametrize("key", EXACT)
def test_key_is_the_authors_on_every_line(lines, key):
    assert [ours[key] for ours, _ in lines] == [theirs[key] for _, theirs in lines]


def test_direction_is_the_authors_but_of_what_the_autograd_thread_does_between_nodes(lines):
    """Sums of gradients and copies into `.grad` on the backward thread are backward work. PyProf
    classified them as fprop, because no enclosing range is named Backward."""
    backward_threads = {theirs["tid"] for _, theirs in lines if theirs["dir"] == "bprop"}
    forward_threads = {
        theirs["tid"] for _, theirs in lines if theirs["tid"] not in backward_threads
    }
    assert backward_threads and forward_threads
    differing = [(ours, theirs) for ours, theirs in lines if ours["dir"] != theirs["dir"]]
    for ours, theirs in differing:
        assert (ours["dir"], theirs["dir"]) == ("bprop", "fprop")
        assert ours["tid"] in backward_threads
        assert all(", seq = 0" in marker for marker in theirs["seqMarker"]), theirs["seqMarker"]
    assert 0 < len(differing) < 40


def test_keys_come_in_the_order_of_pyprof(lines):
    assert all(list(ours) == list(theirs) for ours, theirs in lines)


def test_numbers_are_the_authors_as_a_set(lines):
    for ours, theirs in lines:
        assert {*ours["seqId"], *ours["altSeqId"]} == {*theirs["seqId"], *theirs["altSeqId"]}


def test_numbers_are_told_apart_differently_where_a_product_encloses_another(lines):
    """SPEC 4: seqId is the number of the innermost range that has one, which the backward kernel
    shares. PyProf took the smallest number not seen before (`matmul, seq = 71` around
    `mm, seq = 72`), and put the single 0 of a kernel that accumulates a gradient in altSeqId.
    """
    differing = [
        (ours, theirs)
        for ours, theirs in lines
        if (ours["seqId"], ours["altSeqId"]) != (theirs["seqId"], theirs["altSeqId"])
    ]
    for ours, theirs in differing:
        nested = [marker.split(",")[0] for marker in theirs["seqMarker"]] == ["matmul", "mm"]
        accumulates = theirs["altSeqId"] == [0] and ours["seqId"] == [0]
        assert nested or accumulates, (ours, theirs)
    assert len(differing) > 0


def test_sub_is_the_authors_where_the_number_is(lines):
    same = [(ours, theirs) for ours, theirs in lines if ours["seqId"] == theirs["seqId"]]
    assert len(same) > 100
    assert [o["subSeqId"] for o, _ in same] == [t["subSeqId"] for _, t in same]
