"""Text on a terminal: widths, cuts, colours and bars."""

import re
from itertools import pairwise

import numpy as np
import pytest

from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.table import Floats, Table, text_column
from fastprof.model.table_text import side_by_side
from fastprof.model.terminal import MIDDLE, PLAIN, Colours, bar, cut, cut_all, padded, width_of

ON = Colours(True)
STYLE = re.compile(r"\x1b\[[\d;]*m")


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("", 0), ("层归一化", 8), ("e\u0301t", 2), (ON.strong("ab"), 2)]
)
def test_the_width_is_that_on_a_terminal(text: str, width: int) -> None:
    assert width_of(text) == width
    assert width_of(padded(text, 12, True)) == width_of(padded(text, 12, False)) == 12


@pytest.mark.parametrize("text", ["triton_poi_fused_native_gelu_3", "层归一化层归一化", "aé" * 9])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_a_cut_text_fits_and_keeps_start_or_end(text: str, share: float) -> None:
    for width in range(1, width_of(text)):
        short = cut(text, width, share)
        head, mark, tail = short.partition("…")
        assert width_of(short) <= width and mark
        assert text.startswith(head) and text.endswith(tail)
    assert cut(text, width_of(text), share) == text


def test_names_are_cut_in_the_middle_and_stay_different() -> None:
    gelu = ["triton_poi_fused_native_gelu_3", "triton_poi_fused_native_gelu_4", "short"]
    assert cut_all(gelu, 15, MIDDLE) == ["triton_p…gelu_3", "triton_p…gelu_4", "short"]
    for names in (
        ["[CUDA memcpy HtoD]", "[CUDA memcpy DtoH]"],
        ["one_name_with_a_long_end_of_its_name", "two_name_with_a_long_end_of_its_name"],
        ["a/b/c/one.py:10", "a/b/c/one.py:20", "x/b/c/one.py:10"],
    ):
        for share in (0.0, MIDDLE, 1.0):
            short = cut_all(names, 13, share)
            assert len(set(short)) == len(names) and max(map(len, short)) <= 13
    assert cut_all(["/a/long/path/to/net.py:3"], 12, 0.0) == ["…to/net.py:3"]
    assert cut_all(["N=16,C=64,H=56,W=56", "[3]"], 12, 1.0) == ["N=16,C=64,H…", "[3]"]
    assert cut_all(["x" * 9 + "a" + "x" * 9, "x" * 9 + "b" + "x" * 9], 5, MIDDLE)  # cannot differ


def test_bars_have_the_length_of_their_share() -> None:
    lengths = [bar(share / 80, 10) for share in range(81)]
    assert lengths[0] == " " * 10 and lengths[80] == "█" * 10 == bar(7.0, 10)
    assert all(len(text) == 10 for text in lengths)
    assert all(one != other for one, other in pairwise(lengths))


def table() -> Table:
    return Table(
        {
            "op": text_column(["linear", "relu", "add", None]),
            "gpu_ns": Ints(np.array([800, 195, 5, -1])),
            "share": Floats(np.array([0.8, 0.195, 0.005, np.nan])),
        },
        (Heading("op", "op"), Heading("gpu_ns", "gpu", "ns"), Heading("share", "time", "share")),
        notes=("a note",),
        total={"gpu_ns": 1000},
    )


def test_colours_add_styles_and_bars_and_change_no_word() -> None:
    styled = table().text(colours=ON)
    plain = STYLE.sub("", styled)
    words = [re.sub("[█▏▎▍▌▋▊▉]", "", line).split() for line in plain.splitlines()]
    assert words == [line.split() for line in table().text().splitlines()]
    head, linear, relu, add, unknown, total, note = styled.splitlines()
    assert "\x1b[1mlinear" in linear and "█" * 10 in linear
    assert "\x1b[1mrelu" in relu and "█" * 2 + "▌" in relu
    assert "\x1b[2madd" in add and "█" not in add and "\x1b" not in unknown
    assert all("\x1b[1m" in line for line in (head, total)) and note == "\x1b[2ma note\x1b[0m"
    assert PLAIN.strong("text") == "text"


@pytest.mark.parametrize("width", [20, 30, 40, 60])
def test_bars_stand_only_where_they_fit(width: int) -> None:
    lines = table().text(width=width, colours=ON).splitlines()
    assert max(map(width_of, lines)) <= width
    assert any("█" in line for line in lines) == (width >= 40)


def test_styled_and_wide_blocks_stand_side_by_side() -> None:
    lines = side_by_side([[ON.strong("ab"), "层"], ["x", "y"]], 2)
    assert [STYLE.sub("", line) for line in lines] == ["ab  x", "层  y"]
