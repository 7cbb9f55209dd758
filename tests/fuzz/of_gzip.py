"""Mutations of gzip members."""

import gzip
import zlib

from fuzz import of_bytes, of_text
from fuzz.chance import Chance


def _text(content: bytes, chance: Chance) -> bytes:
    """Valid members of invalid text."""
    kinds = list((of_bytes.KINDS | of_text.KINDS).values())
    return gzip.compress(chance.choice(kinds)(gzip.decompress(content), chance), mtime=0)


def _members(content: bytes, chance: Chance) -> bytes:
    """The text in several members, with bytes between or after them."""
    text, members = gzip.decompress(content), []
    cuts = sorted(chance.randrange(len(text)) for _ in range(chance.choice([1, 2, 20])))
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        members.append(gzip.compress(text[start:end], mtime=0))
    between = chance.choice(
        [b"", b"", b"\0", b"\0" * 600, b"\x1f", b"\x1f\x8b", b"x", members[0][:9]]
    )
    members.insert(chance.place(len(members) + 1), between)
    return b"".join(members)


def _inflated(content: bytes, chance: Chance) -> bytes:
    """Long runs of blanks, quotes or brackets: 16 MB from a few kB."""
    filler = chance.choice([b" ", b'"', b"[", b"{", b"x", b"\0", b"\\", b"1", b'{"a":1},'])
    text = gzip.decompress(content)
    at = chance.place(len(text))
    text = text[:at] + filler * ((16 << 20) // len(filler)) + text[at:]
    return gzip.compress(text, 1, mtime=0)


def _raw(content: bytes, chance: Chance) -> bytes:
    """Other headers or trailers, or no gzip."""
    text = gzip.decompress(content)
    deflated = content[10:-8]
    name = b"name\0" if chance.random() < 0.5 else b"x" * 70_000
    return chance.choice(
        [
            zlib.compress(text),
            content[:3] + b"\x08" + content[4:10] + name + deflated + content[-8:],
            content[:3] + b"\x04" + content[4:10] + b"\xff\xff" + deflated + content[-8:],
            content[:-8] + bytes(8),
            content[:-4],
            content[:10] + b"\x03\x00" + bytes(8) + content,
        ]
    )


KINDS = {
    "gzip-text": _text,
    "gzip-members": _members,
    "gzip-inflated": _inflated,
    "gzip-raw": _raw,
}
