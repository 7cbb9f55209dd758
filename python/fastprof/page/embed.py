"""Data inside HTML: JSON and arrays, compressed, as base64 text."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.model.names import printable

_TYPES: Final = frozenset(f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32)) | {
    "float32",
    "float64",
}
_ALIGNED: Final = 8


def shown(text: str) -> str:
    """A text from a file as HTML: escaped, control characters and lone surrogates replaced."""
    return html.escape(printable(text))


def packed(data: Any, arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    """Data and arrays as base64 of a zlib stream; `decode` in page.js reads it.

    The stream contains the length of a JSON header (uint32), the header, and the arrays, each at a
    multiple of 8 bytes, all little-endian. The header gives data, and type, offset and length of
    each array; offsets count from the end of the header.

    Raises
    ------
    TypeError
        An array has a type that JavaScript lacks.
    """
    parts, places, end = [], {}, 0
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES or array.ndim != 1:
            raise TypeError(
                f"array {name!r}: expected one dimension of {', '.join(sorted(_TYPES))}; "
                f"found {array.ndim} of {array.dtype}"
            )
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        places[name] = [array.dtype.name, end, len(array)]
        parts.append(_padded(raw))
        end += len(parts[-1])
    header = _json({"data": data, "arrays": places}).encode("ascii")
    header += b" " * (-(4 + len(header)) % _ALIGNED)
    stream = b"".join([len(header).to_bytes(4, "little"), header, *parts])
    return base64.b64encode(zlib.compress(stream, 6)).decode("ascii")


def _padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % _ALIGNED)


def _json(value: Any) -> str:
    """JSON in ASCII. NaN and infinities become null, invisible characters spaces."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False, default=_plain)
    return _INVISIBLE.sub(r"\1 ", text)


# Escapes of control characters, of marks and overrides of the text direction, and of line and
# paragraph separators. Pairs of backslashes before them are escaped backslashes.
_INVISIBLE: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u(?:00[01][0-9a-f]|007f|00[89][0-9a-f]|061c|20(?:0[b-f]|2[89a-e]|6[0-9a-f])|feff)"
)


def _plain(value: Any) -> Any:
    """The Python value of a NumPy number or array."""
    if isinstance(value, np.generic | np.ndarray):
        return _finite(value.tolist())
    raise TypeError(f"expected a value that JSON can represent, found {type(value).__name__}")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
