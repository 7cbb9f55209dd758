"""Dict lines, the output of `fastprof parse` and PyProf, to one column per key.

No line is executed: the compiled scanner splits lines, and `ast.literal_eval`, which accepts
literals only, converts each distinct text.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from fastprof._core._dict import INT_KEYS, LIST_KEYS, TEXT_KEYS, TRIPLE_KEYS, DictReader
from fastprof._system.file_state import ChangeGuard
from fastprof._system.regex import regex
from fastprof.errors import BadInputError
from fastprof.model.columns import Column, Ints, Lists, Values
from fastprof.model.markers.literal import parsed

BLOCK_SIZE = 1 << 22
_MARGIN = 1.05  # for lines of different lengths
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Keys that no other format has. One of them identifies a dict line.
_DICT_KEY = regex(
    rb"[\"'](kShortName|kDuration|kLongName|reprMarkers|seqMarker|subSeqId|altSeqId)[\"']\s*:"
)
# A trace of torch.profiler on a single line looks like a dict line with unknown keys.
_TRACE_KEY = regex(rb"\"traceEvents\"\s*:")
# Fast path: strings without escapes, and lists of such strings.
_STRING = r"""(?:'[^'\\]*'|"[^"\\]*")"""
_PLAIN_STRING = regex(_STRING)
_PLAIN_LIST = regex(rf"\[(?:{_STRING}(?:, ?{_STRING})*,?)?\]")
_STRING_KEYS = frozenset({"kShortName", "dir", "kLongName"})


def looks_like_dict_lines(head: bytes) -> bool:
    """Whether a file that starts with `head` contains dict lines. The last line may be cut."""
    first = head.removeprefix(BYTE_ORDER_MARK).lstrip().split(b"\n", 1)[0]
    return re.match(rb"\{\s*[uUbB]?[\"']", first) is not None and bool(_DICT_KEY.search(first))


def read(source: str | os.PathLike[str] | BinaryIO, name: str) -> dict[str, Column]:
    """Read all dict lines of a file or a pipe.

    Parameters
    ----------
    source : path or binary file
        A binary file must have `readinto` (files, pipes, `io.BytesIO`). It is not closed.
    name : str
        Name of the input in messages.

    Returns
    -------
    dict of str to Column
        All keys of dict lines: numbers as Ints, seqId and altSeqId as Lists, grid and block as
        Ints [n, 3], kShortName, dir and kLongName as Values of str, others as Values of tuples of
        str. seqMarker has no seq and op_id. Missing keys are "not known".

    Raises
    ------
    BadInputError
        A line is not a dict line. The message has the line number.

    Notes
    -----
    Time is linear in the bytes read, plus one `literal_eval` per distinct text. Memory: the
    columns, the distinct texts and a few MB.
    """
    reader = DictReader(name)
    if isinstance(source, str | os.PathLike):
        with open(source, "rb", buffering=0) as file:
            guard = ChangeGuard(file.fileno(), name)
            _feed(reader, file, name, os.fstat(file.fileno()).st_size)
            guard.check()
    else:
        _feed(reader, source, name)
    arrays = reader.finish()
    columns: dict[str, Column] = {key: Ints(arrays[key]) for key in (*INT_KEYS, *TRIPLE_KEYS)}
    columns |= {key: Lists(*arrays[key]) for key in LIST_KEYS}
    columns |= {key: Values(arrays[key], _values(reader, key, name)) for key in TEXT_KEYS}
    return columns


def _feed(reader: DictReader, file: BinaryIO, name: str, size: int = 0) -> None:
    """Feed the file block by block. An incomplete line moves to the next block.

    size : bytes of the file, 0 if unknown
    """
    block = np.empty(BLOCK_SIZE, np.uint8)
    filled = _fill(file, block)
    if bytes(block[: min(filled, 3)]) == BYTE_ORDER_MARK:
        block[:3] = ord(" ")
    head = bytes(block[:filled]).lstrip().split(b"\n", 1)[0]
    if _TRACE_KEY.search(head) and not _DICT_KEY.search(head):
        raise BadInputError(
            f"{name}: line 1: expected a dict line, found a trace of torch.profiler; "
            "traces are read from files, not from pipes: give its path"
        )
    while filled == len(block):
        used = reader.feed(block)
        if used and size:
            reader.expect(_MARGIN * size / used)  # rows, estimated from the first block
            size = 0
        left = filled - used
        if used:
            block[:left] = block[used:].copy()
        elif bytes(block[:1000]).lstrip()[:1] != b"{":
            break  # not a dict line
        else:
            block = np.concatenate([block, np.empty_like(block)])
        filled = left + _fill(file, block[left:])
    reader.feed(block[:filled], is_end=True)


def _fill(file: BinaryIO, block: npt.NDArray[np.uint8]) -> int:
    """Read until the block is full or the file ends. Returns the number of bytes read."""
    filled = 0
    while filled < len(block):
        count = file.readinto(block.data[filled:])  # type: ignore[attr-defined]  # not in BinaryIO
        if count is None:
            raise BlockingIOError("the input is non-blocking and has no data")
        if count == 0:
            break
        filled += count
    return filled


def _values(reader: DictReader, key: str, name: str) -> list[Any]:
    """The value of each distinct text of a key."""
    convert = _string if key in _STRING_KEYS else _strings
    return [
        _value(text, convert, f"{name}: line {line}: {key}") for text, line in reader.texts(key)
    ]


def _value(text: bytes, convert: Callable[[Any], Any], where: str) -> Any:
    """The value of a literal, converted by `convert`."""
    source = _decode(text)
    try:
        return convert(_literal(source))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise BadInputError(
            f"{where}: expected {convert.__doc__}, found {source[:40]!r} ({_reason(error)}); "
            "create the file with: fastprof parse TRACE > net.dict"
        ) from None


def _reason(error: Exception) -> str:
    """The message of ast without object addresses."""
    return re.sub(r": <.* object at 0x[0-9a-f]+>", "", str(error))


def _literal(source: str) -> Any:
    """The value of a literal."""
    if _PLAIN_STRING.fullmatch(source):
        return source[1:-1]
    if _PLAIN_LIST.fullmatch(source):
        return [string[1:-1] for string in _PLAIN_STRING.findall(source)]
    return ast.literal_eval(parsed(source.lstrip(" \t")))


def _decode(text: bytes) -> str:
    """UTF-8 text; invalid bytes become \\u escapes of their surrogateescape characters."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        decoded = text.decode("utf-8", "surrogateescape")
        return re.sub("[\udc80-\udcff]", lambda found: f"\\u{ord(found[0]):04x}", decoded)


def _string(value: Any) -> str:
    """a string"""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise TypeError(f"it is {type(value).__name__}")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    """a list of strings"""
    if not isinstance(value, list | tuple):
        raise TypeError(f"it is {type(value).__name__}")
    return tuple(map(_string, value))
