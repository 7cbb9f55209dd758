"""Mutations of any bytes."""

from fuzz.chance import Chance

_TELLING = [0, 1, 2, 5, 10, 13, 34, 39, 44, 91, 92, 93, 123, 125, 127, 128, 192, 237, 254, 255]


def _bits(content: bytes, chance: Chance) -> bytes:
    out = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8])):
        out[chance.place(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def _values(content: bytes, chance: Chance) -> bytes:
    out = bytearray(content)
    for _ in range(chance.choice([1, 1, 3, 16])):
        out[chance.place(len(out))] = chance.choice([*_TELLING, chance.randrange(256)])
    return bytes(out)


def _cut(content: bytes, chance: Chance) -> bytes:
    return content[: chance.place(len(content))]


def _lost(content: bytes, chance: Chance) -> bytes:
    part = chance.stretch(len(content), 5000)
    return content[: part.start] + content[part.stop :]


def _doubled(content: bytes, chance: Chance) -> bytes:
    part = chance.stretch(len(content), 5000)
    return content[: part.stop] + content[part.start :]


def _zeros(content: bytes, chance: Chance) -> bytes:
    part = chance.stretch(len(content), 5000)
    return content[: part.start] + bytes(part.stop - part.start) + content[part.stop :]


def _moved(content: bytes, chance: Chance) -> bytes:
    """Replace a part by another part."""
    part = chance.stretch(len(content), 5000)
    length = part.stop - part.start
    at = chance.randrange(len(content) - length + 1)
    return content[: part.start] + content[at : at + length] + content[part.stop :]


def _inserted(content: bytes, chance: Chance) -> bytes:
    at = chance.place(len(content))
    more = chance.randbytes(chance.choice([1, 2, 7, 100, 4096]))
    return content[:at] + more + content[at:]


KINDS = {
    "bits": _bits,
    "bytes": _values,
    "cut": _cut,
    "lost": _lost,
    "doubled": _doubled,
    "zeros": _zeros,
    "moved": _moved,
    "inserted": _inserted,
}
