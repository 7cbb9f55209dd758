"""Dict lines, as `fastprof parse` and PyProf print them -> one column a key.

No line is executed: the compiled scanner takes lines apart, and each distinct text becomes a value
by `ast.literal_eval`, which accepts literals only.
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
from fastprof.errors import BadInputError
from fastprof.model.columns import Column, Ints, Lists, Values
from fastprof.model.markers.literal import parsed
from fastprof.readers.unchanged import Unchanged

BLOCK_SIZE = 1 << 22
_MARGIN = 1.05  # lines of one file differ in length
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Keys that no other format has; one of them is enough to know a dict line.
_TELLING_KEY = re.compile(
    rb"[\"'](kShortName|kDuration|kLongName|reprMarkers|seqMarker|subSeqId|altSeqId)[\"']\s*:"
)
# A trace in one line has the form of a dict line, whose keys are all unknown.
_TRACE_KEY = re.compile(rb"\"traceEvents\"\s*:")
# Strings without escapes, and lists of them, are the common case and need no parser.
_STRING = r"""(?:'[^'\\]*'|"[^"\\]*")"""
_PLAIN_STRING = re.compile(_STRING)
_PLAIN_LIST = re.compile(rf"\[(?:{_STRING}(?:, ?{_STRING})*,?)?\]")
_STRING_KEYS = frozenset({"kShortName", "dir", "kLongName"})


def looks_like_dict_lines(head: bytes) -> bool:
    """Say whether a file that starts with `head` holds dict lines (also if cut inside a line)."""
    first = head.removeprefix(BYTE_ORDER_MARK).lstrip().split(b"\n", 1)[0]
    return re.match(rb"\{\s*[uUbB]?[\"']", first) is not None and bool(_TELLING_KEY.search(first))


def read(source: str | os.PathLike[str] | BinaryIO, name: str) -> dict[str, Column]:
    """Read all dict lines of a file or a pipe.

    Parameters
    ----------
    source : path or binary file
        A binary file needs `readinto`, as files, pipes and `io.BytesIO` have. It is not closed.
    name : str
        What the input is called in messages.

    Returns
    -------
    dict of str to Column
        Every key of SPEC's dict line: numbers as Ints, seqId and altSeqId as Lists, grid and block
        as Ints [n, 3], kShortName, dir and kLongName as Values of str, the rest as Values of
        tuples of str. seqMarker comes without seq and op_id. Keys that a line lacks are "not
        known".

    Raises
    ------
    BadInputError
        A line is no dict line; the text has its number.

    Notes
    -----
    Linear in the bytes read, plus one `literal_eval` for each distinct text. Memory holds the
    columns, the distinct texts and a few MB.
    """
    reader = DictReader(name)
    if isinstance(source, str | os.PathLike):
        with open(source, "rb", buffering=0) as file:
            unchanged = Unchanged(file.fileno(), name)
            _feed(reader, file, name, os.fstat(file.fileno()).st_size)
            unchanged.check()
    else:
        _feed(reader, source, name)
    arrays = reader.finish()
    columns: dict[str, Column] = {key: Ints(arrays[key]) for key in (*INT_KEYS, *TRIPLE_KEYS)}
    columns |= {key: Lists(*arrays[key]) for key in LIST_KEYS}
    columns |= {key: Values(arrays[key], _values(reader, key, name)) for key in TEXT_KEYS}
    return columns


def _feed(reader: DictReader, file: BinaryIO, name: str, size: int = 0) -> None:
    """Give the reader the file block by block; what is left of a line moves to the next block.

    size : bytes of the file; 0 where that is not known
    """
    block = np.empty(BLOCK_SIZE, np.uint8)
    filled = _fill(file, block)
    if bytes(block[: min(filled, 3)]) == BYTE_ORDER_MARK:
        block[:3] = ord(" ")
    head = bytes(block[:filled]).lstrip().split(b"\n", 1)[0]
    if _TRACE_KEY.search(head) and not _TELLING_KEY.search(head):
        raise BadInputError(
            f"{name}: line 1: expected a dict line, found a trace of torch.profiler; "
            "it is read from a file, not from a pipe: give its path"
        )
    while filled == len(block):
        used = reader.feed(block)
        if used and size:
            reader.expect(_MARGIN * size / used)  # by the lines of the first block
            size = 0
        left = filled - used
        if used:
            block[:left] = block[used:].copy()
        elif bytes(block[:1000]).lstrip()[:1] != b"{":
            break  # no dict line, however much of it follows
        else:
            block = np.concatenate([block, np.empty_like(block)])
        filled = left + _fill(file, block[left:])
    reader.feed(block[:filled], is_end=True)


def _fill(file: BinaryIO, block: npt.NDArray[np.uint8]) -> int:
    """Read until the block is full or the file ends, and say how many bytes that were."""
    filled = 0
    while filled < len(block):
        count = file.readinto(block.data[filled:])  # type: ignore[attr-defined]  # not in BinaryIO
        if count is None:
            raise BlockingIOError("the input has no bytes now")
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
    """The value of a raw literal, as `convert` wants it."""
    source = _decode(text)
    try:
        return convert(_literal(source))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError) as error:
        raise BadInputError(
            f"{where}: expected {convert.__doc__}, found {source[:40]!r} ({_reason(error)}); "
            "create the file with: fastprof parse TRACE > net.dict"
        ) from None


def _reason(error: Exception) -> str:
    """What ast says, without the address of its object."""
    return re.sub(r": <.* object at 0x[0-9a-f]+>", "", str(error))


def _literal(source: str) -> Any:
    """The value of a literal."""
    if _PLAIN_STRING.fullmatch(source):
        return source[1:-1]
    if _PLAIN_LIST.fullmatch(source):
        return [string[1:-1] for string in _PLAIN_STRING.findall(source)]
    return ast.literal_eval(parsed(source.lstrip(" \t")))


def _decode(text: bytes) -> str:
    """UTF-8 text; bytes that are not UTF-8 become escapes of the characters surrogateescape has."""
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
