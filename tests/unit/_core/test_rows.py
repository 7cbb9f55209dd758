"""The compiled row writer: all kinds of cells, blocks, and partial writes."""

import io
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fastprof._core._rows import RowWriter
from fastprof.errors import InternalError
from fastprof.writers import write_threads
from fastprof.writers.write_threads import write_on_threads

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def int32(*values):
    return np.array(values, np.int32)


def int64(*values):
    return np.array(values, np.int64)


def written(writer, *rows):
    file = io.BytesIO()
    write_on_threads(writer, file, *rows)
    return file.getvalue().decode()


def ints(values, *, width=0, none=-1):
    writer = RowWriter(len(values), b"|")
    writer.add_ints(b"", values, none=none, none_text=b"na", width=width)
    return written(writer)


def triples(values, *, width=0):
    writer = RowWriter(len(values), b"|")
    brackets = (b"(", b", ", b")")
    writer.add_triples(b"", values, none=-1, none_text=b"na", brackets=brackets, width=width)
    return written(writer)


def lists(offsets, values, *, width=0):
    writer = RowWriter(len(offsets) - 1, b"|")
    brackets = (b"", b",", b"")
    writer.add_lists(b"", offsets, values, none_text=b"-", brackets=brackets, width=width)
    return written(writer)


@pytest.mark.parametrize("numbers", [int32, int64])
def test_a_single_is_the_list_of_its_number(numbers):
    writer = RowWriter(4, b"|")
    brackets = (b"[", b",", b"]")
    writer.add_singles(b":", numbers(7, -1, 0, 123456), none=-1, none_text=b"[]", brackets=brackets)
    writer.add_singles(
        b" ", numbers(5, 6, 5, 12), none=5, none_text=b"-", brackets=brackets, width=3
    )
    assert written(writer) == ":[7] -  |:[] [6]|:[0] -  |:[123456] [12|"
    with pytest.raises(ValueError, match="n_rows"):
        writer.add_singles(b"", numbers(7), none=-1, none_text=b"", brackets=brackets)


class Trickle(io.RawIOBase):
    """A raw file that takes a few bytes at a time."""

    def __init__(self, at_once):
        self.at_once, self.taken = at_once, bytearray()

    def writable(self):
        return True

    def write(self, view):
        self.taken += bytes(view[: self.at_once])
        return min(len(view), self.at_once)


def test_numbers_of_both_widths_print_to_their_extremes():
    assert ints(int32(0, 7, 2**31 - 1, -(2**31))) == "0|7|2147483647|-2147483648|"
    assert ints(int64(INT64_MIN, INT64_MAX)) == "-9223372036854775808|9223372036854775807|"


def test_the_none_number_prints_its_text_and_others_do_not():
    assert ints(int64(-1, 0, -2)) == "na|0|-2|"
    assert ints(int64(INT64_MIN, -1), none=INT64_MIN) == "na|-1|"


def test_numbers_with_a_width_stand_on_the_right_and_are_never_cut():
    assert ints(int64(5, -1, 123456), width=4) == "   5|  na|123456|"


def test_three_numbers_print_in_brackets_unless_the_first_is_none():
    assert triples(int32(1, 2, 3, -1, 2, 3).reshape(2, 3)) == "(1, 2, 3)|na|"
    assert triples(int64(INT64_MAX, -1, -1).reshape(1, 3)) == "(9223372036854775807, -1, -1)|"


def test_three_numbers_with_a_width_stand_on_the_left_and_are_cut():
    values = int32(1, 2, 3, -1, -1, -1, 1000, 2000, 3000).reshape(3, 3)
    assert triples(values, width=10) == "(1, 2, 3) |na        |(1000, 200|"


def test_lists_print_their_numbers_or_the_text_for_none():
    assert lists(int64(0, 0, 1, 3), int64(5, INT64_MIN, 7)) == "-|5|-9223372036854775808,7|"


def test_lists_with_a_width_stand_on_the_left_and_are_cut():
    assert lists(int64(0, 0, 1, 3), int64(5, 123, 456), width=5) == "-    |5    |123,4|"


def test_texts_print_as_they_are_and_minus_one_prints_none():
    writer = RowWriter(4, b"\n")
    writer.add_texts(b"<", int32(1, -1, 0, 2), ["é".encode(), b"", b"a\x00b"], none_text=b"na")
    assert written(writer) == "<\n<na\n<é\n<a\x00b\n"


def test_columns_print_from_left_to_right_with_what_stands_before_them():
    writer = RowWriter(2, b"}\n")
    writer.add_ints(b"{a: ", int32(1, 2), none=-1, none_text=b"")
    writer.add_texts(b", b: ", int32(0, 0), [b"x"], none_text=b"")
    assert written(writer) == "{a: 1, b: x}\n{a: 2, b: x}\n"


def test_only_the_rows_asked_for_are_written():
    writer = RowWriter(5, b" ")
    writer.add_ints(b"", int64(0, 1, 2, 3, 4), none=-1, none_text=b"")
    assert written(writer, 1, 3) == "1 2 "
    assert written(writer, 5, 5) == ""
    with pytest.raises(ValueError, match="out of bounds"):
        written(writer, 3, 6)


def test_no_rows_write_nothing():
    writer = RowWriter(0, b"\n")
    writer.add_ints(b"", int32(), none=-1, none_text=b"")
    writer.add_triples(
        b"", np.empty((0, 3), np.int32), none=-1, none_text=b"", brackets=(b"", b"", b"")
    )
    writer.add_texts(b"", int32(), [], none_text=b"")
    writer.add_lists(b"", int64(0), int64(), none_text=b"", brackets=(b"", b"", b""))
    assert written(writer) == ""


def test_read_only_columns_are_fine():
    values = int64(1, 2)
    values.flags.writeable = False
    assert ints(values) == "1|2|"


BLOCK = 1 << 22  # bytes: slightly more than a block


def test_rows_longer_than_a_block_are_written_whole():
    long = b"x" * (2 * BLOCK + 5)
    for ids in ([1, 0, 1], [0, 1], [1] * 900_000 + [0, 1, 0]):
        writer = RowWriter(len(ids), b"\n")
        writer.add_texts(b"", int32(*ids), [long, b"short"], none_text=b"")
        wanted = b"".join((b"short\n" if number else long + b"\n") for number in ids)
        assert written(writer).encode() == wanted


@pytest.mark.parametrize("order", [1, -1])
def test_many_blocks_join_without_a_seam(order):
    values = 7 ** (np.arange(3_000_000)[::order] // 150_000)  # increasing or decreasing length
    assert ints(values) == "".join(f"{value}|" for value in values.tolist())


@pytest.fixture(scope="module")
def many():
    """Numbers that fill several blocks, and their rows."""
    values = np.arange(3_000_000)
    return values, "".join(f"{value}|" for value in values.tolist()).encode()


@pytest.mark.parametrize("number", range(5))
def test_an_error_at_any_block_is_raised_and_nothing_follows(number, many):
    class Failing:
        taken = b""

        def write(self, view):
            if len(self.taken) >= number * BLOCK // 2:
                raise OSError("the disk is full")
            self.taken += view
            return len(view)

    file = Failing()
    values, rows = many
    writer = RowWriter(len(values), b"|")
    writer.add_ints(b"", values, none=-1, none_text=b"")
    with pytest.raises(OSError, match="the disk is full"):
        write_on_threads(writer, file)
    begins = rows.startswith(file.taken)
    assert begins


def test_a_raw_file_that_takes_part_of_a_block_gets_all_of_it():
    file = Trickle(1000)
    writer = RowWriter(5000, b"\n")
    writer.add_ints(b"", np.arange(5000), none=-1, none_text=b"")
    write_on_threads(writer, file)
    assert file.taken.decode().split() == [str(value) for value in range(5000)]


def test_a_closed_pipe_is_an_os_error():
    reading, writing = os.pipe()
    os.close(reading)
    writer = RowWriter(1, b"\n")
    writer.add_ints(b"", int64(1), none=-1, none_text=b"")
    with open(writing, "wb", buffering=0) as file, pytest.raises(BrokenPipeError):
        write_on_threads(writer, file)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_os_error():
    writer = RowWriter(1, b"\n")
    writer.add_ints(b"", int64(1), none=-1, none_text=b"")
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        write_on_threads(writer, file)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
@pytest.mark.parametrize("moment", range(1, 5))
def test_ctrl_c_ends_writing_between_blocks(moment):
    class Interrupted:
        blocks = 0

        def write(self, view):
            self.blocks += 1
            if self.blocks == moment:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            if self.blocks >= moment:
                time.sleep(0.05)  # for the main thread to go on, on a busy machine
            return len(view)

    file = Interrupted()
    writer = RowWriter(9_000_000, b"\n")
    writer.add_ints(b"", np.arange(9_000_000), none=-1, none_text=b"")
    with pytest.raises(KeyboardInterrupt):
        write_on_threads(writer, file)
    assert file.blocks <= moment + 8  # of 20: what the other thread wrote meanwhile


def test_ctrl_c_while_the_other_thread_starts_ends_its_writing_too(monkeypatch):
    """On a busy machine the other thread may write for long before this one goes on."""
    began = threading.Event()

    class Slow(ThreadPoolExecutor):
        def submit(self, *arguments):
            super().submit(*arguments)
            began.wait()
            raise KeyboardInterrupt

    class Waiting:
        blocks = 0

        def write(self, view):
            self.blocks += 1
            if threading.current_thread() is not threading.main_thread():
                began.set()
                time.sleep(0.01)
            return len(view)

    monkeypatch.setattr(write_threads, "ThreadPoolExecutor", Slow)
    file = Waiting()
    writer = RowWriter(9_000_000, b"\n")
    writer.add_ints(b"", np.arange(9_000_000), none=-1, none_text=b"")
    with pytest.raises(KeyboardInterrupt):
        write_on_threads(writer, file)
    assert file.blocks < 10


def test_an_id_outside_the_texts_is_an_internal_error():
    for bad in (2, -2, 2**31 - 1):
        writer = RowWriter(2, b"\n")
        writer.add_texts(b"", int32(0, bad), [b"a", b"b"], none_text=b"")
        with pytest.raises(InternalError, match="index"):
            written(writer)


def test_an_offset_outside_the_values_is_an_internal_error():
    for offsets in (int64(0, 4), int64(-1, 1), int64(2, 1)):
        with pytest.raises(InternalError, match="index"):
            lists(offsets, int64(1, 2, 3))


def test_columns_of_another_length_or_type_are_refused():
    writer = RowWriter(2, b"\n")
    with pytest.raises(ValueError, match=r"not \[n_rows\]"):
        writer.add_ints(b"", int64(1), none=-1, none_text=b"")
    with pytest.raises(ValueError, match="mismatch"):
        writer.add_ints(b"", np.array([1.0, 2.0]), none=-1, none_text=b"")
    with pytest.raises(ValueError, match=r"\[n_rows, 3\]"):
        brackets = (b"", b"", b"")
        writer.add_triples(b"", int64(1, 2), none=-1, none_text=b"", brackets=brackets)
    with pytest.raises(ValueError, match=r"\[n_rows \+ 1\]"):
        writer.add_lists(b"", int64(0, 0), int64(), none_text=b"", brackets=(b"", b"", b""))


# Lists of torch ranges.


def seqmarkers(labels, ranges, frames, rows, is_torch=None):
    """Rows for labels (head, tail), ranges (label, seq, op_id), frames (parent, range)."""
    label, seq, op_id = np.array(ranges, np.int64).reshape(-1, 3).T
    parent, range_of_frame = np.array(frames, np.int32).reshape(-1, 2).T
    writer = RowWriter(len(rows), b"\n")
    writer.add_seqmarkers(
        b"",
        np.array(rows, np.int32),
        np.ascontiguousarray(parent),
        np.ascontiguousarray(range_of_frame),
        label.astype(np.int32),
        np.ascontiguousarray(seq),
        np.ascontiguousarray(op_id),
        np.array([1] * len(labels) if is_torch is None else is_torch, np.uint8),
        [head for head, _ in labels],
        [tail for _, tail in labels],
        quote=b"'",
    )
    return written(writer).splitlines()


def test_a_kernel_outside_every_range_has_an_empty_list():
    assert seqmarkers([], [], [], [-1, -1]) == ["[]", "[]"]


def test_torch_ranges_around_a_kernel_are_sorted_by_number_then_name():
    labels = [(b"dot", b""), (b"addmm", b""), (b"aten::t", b"")]
    ranges = [(0, 9, -1), (1, 9, -1), (2, -1, -1), (0, 3, -1)]
    frames = [(-1, 0), (0, 1), (1, 2), (2, 3)]
    assert seqmarkers(labels, ranges, frames, [3, 0]) == [
        "['aten::t', 'dot, seq = 3', 'addmm, seq = 9', 'dot, seq = 9']",
        "['dot, seq = 9']",
    ]


def test_of_pytorch_1_ranges_with_one_number_and_like_names_the_first_is_kept():
    labels = [(b"layer_norm", b""), (b"native_layer_norm", b"")]
    frames = [(-1, 0), (0, 1)]
    assert seqmarkers(labels, [(0, 7, -1), (1, 7, -1)], frames, [1]) == ["['layer_norm, seq = 7']"]
    assert seqmarkers(labels, [(0, 7, -1), (1, 8, -1)], frames, [1]) == [
        "['layer_norm, seq = 7', 'native_layer_norm, seq = 8']"
    ]
    assert seqmarkers(labels, [(0, 7, 1), (1, 7, 2)], frames, [1]) == [
        "['layer_norm, seq = 7, op_id = 1', 'native_layer_norm, seq = 7, op_id = 2']"
    ]


def test_numbers_stand_between_name_and_sizes():
    labels = [(b"mm", b", sizes = [[2, 3]]")]
    ranges = [(0, 0, 0), (0, -1, 5), (0, INT64_MAX, -1), (0, -1, -1)]
    frames = [(-1, 0), (-1, 1), (-1, 2), (-1, 3)]
    assert seqmarkers(labels, ranges, frames, [0, 1, 2, 3]) == [
        "['mm, seq = 0, op_id = 0, sizes = [[2, 3]]']",
        "['mm, op_id = 5, sizes = [[2, 3]]']",
        "['mm, seq = 9223372036854775807, sizes = [[2, 3]]']",
        "['mm, sizes = [[2, 3]]']",
    ]


def test_equal_texts_are_written_once():
    labels = [(b"mm", b""), (b"mm", b"")]
    ranges = [(0, 7, 1), (1, 7, 2), (1, 7, 1)]
    frames = [(-1, 0), (0, 1), (1, 2)]
    assert seqmarkers(labels, ranges, frames, [2]) == [
        "['mm, seq = 7, op_id = 1', 'mm, seq = 7, op_id = 2']"
    ]


def test_ranges_that_are_not_torch_s_are_left_out():
    labels = [(b"layer:a", b""), (b"mm", b"")]
    frames = [(-1, 0), (0, 1), (1, 0)]
    ranges = [(0, -1, -1), (1, 4, -1)]
    assert seqmarkers(labels, ranges, frames, [2, 0], [0, 1]) == ["['mm, seq = 4']", "[]"]


def test_a_hundred_thousand_frames_deep_is_fine():
    n = 100_000
    ranges = [(0, seq, -1) for seq in range(n)]
    frames = [(frame - 1, n - 1 - frame) for frame in range(n)]
    expected = "[" + ", ".join(f"'mm, seq = {seq}'" for seq in range(n)) + "]"
    assert seqmarkers([(b"mm", b"")], ranges, frames, [n - 1]) == [expected]


@pytest.mark.parametrize(
    ("ranges", "frames", "rows"),
    [
        ([(0, 1, 1)], [(-1, 0)], [1]),
        ([(0, 1, 1)], [(-1, 0)], [-2]),
        ([(0, 1, 1)], [(-1, 1)], [0]),
        ([(1, 1, 1)], [(-1, 0)], [0]),
        ([(0, 1, 1)], [(0, 0)], [0]),
    ],
    ids=["frame", "negative frame", "range", "label", "parent not before the frame"],
)
def test_frames_that_point_nowhere_are_an_internal_error(ranges, frames, rows):
    with pytest.raises(InternalError, match="index"):
        seqmarkers([(b"mm", b"")], ranges, frames, rows)
