"""Mutations of JSON text and of dict lines, token by token."""

import re

from fuzz.chance import EXTREMES, Chance

_TOKEN = re.compile(rb"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*|[A-Za-z]+""")
_BRACKETS = re.compile(rb"[\[\]{}(),:\"']")
_NUMBERS = [str(number).encode() for number in EXTREMES] + [
    *(
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"1.5e3",
        b"0.0001",
        b"-0",
        b"-0.0",
        b"01",
        b"1.",
        b".5",
        b"+1",
    ),
    *(b"1" + b"0" * 400, b"9" * 5000, b"0." + b"3" * 400, b"1e999999999999", b"1_000", b"0x10"),
    *(b"4.9406564584124654e-324", b"1.7976931348623159e308", b"9223372036854775.8079", b"1e18"),
]
_NAMES = [
    *(b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"None", b"True", b"nul"),
    *(
        b"[]",
        b"{}",
        b"()",
        b"[[]]",
        b"{'a': 1}",
        b'{"a": 1}',
        b"(1,)",
        b"(1, 2, 3, 4)",
        b"[1, 2, 3]",
    ),
    *(
        b"",
        b" ",
        b",",
        b":",
        b"b'\\xff'",
        b"u'a'",
        b"f'{1}'",
        b"...",
        b"1+2j",
        b"set()",
        b"__import__",
    ),
]
_INSIDE = [
    *(
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b"\0",
        b"\n",
        b"\r",
        b"\t",
    ),
    *(
        b"\\ud800",
        b"\\udc00",
        b"\\ud83d\\ude00",
        b"\\uZZZZ",
        b"\\u12",
        b"\\x4",
        b"\\N{BULLET}",
        b"\\",
    ),
    *(
        b'"',
        b"'",
        b"\\\\",
        b"\\0",
        b"\\x00",
        b"\x1f",
        b"\x01",
        b"\x02",
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
    ),
    *(
        b"layer:",
        b", seq = 7",
        b", seq = 9223372036854775808",
        b", op_id = 3",
        b", sizes = [[2, 3]",
    ),
    *(
        b"{'mod': 'torch', 'op': 'mm', 'args': []}",
        b"{'traceMarker': [",
        b"ProfilerStep#9",
        b"x" * 9000,
    ),
]
_OPEN = [b"[", b"{", b"(", b'{"a":', b"{'a': ", b"[{", b"[[],", b"((", b"-", b"not ", b"[1,"]
_CLOSE = {ord("["): b"]", ord("{"): b"}", ord("("): b")"}
_DEPTHS = (10, 99, 100, 101, 511, 512, 513, 3000, 100_000)


def _token(content: bytes, chance: Chance) -> re.Match[bytes] | None:
    """The next token after a random position."""
    return _TOKEN.search(content, chance.place(max(1, len(content))))


def _replaced(content: bytes, chance: Chance, values: list[bytes]) -> bytes:
    for _ in range(chance.choice([1, 1, 4])):
        result = _token(content, chance)
        if result:
            content = content[: result.start()] + chance.choice(values) + content[result.end() :]
    return content


def _number(content: bytes, chance: Chance) -> bytes:
    return _replaced(content, chance, _NUMBERS)


def _name(content: bytes, chance: Chance) -> bytes:
    return _replaced(content, chance, _NAMES)


def _other(content: bytes, chance: Chance) -> bytes:
    """Replace a token by another one: a key, a name, an id."""
    result = _token(content, chance)
    return _replaced(content, chance, [result.group()]) if result else content


def _string(content: bytes, chance: Chance) -> bytes:
    """Change bytes in a string."""
    for _ in range(chance.choice([1, 1, 4])):
        result = _token(content, chance)
        if result and result.group()[:1] in (b'"', b"'"):
            at = chance.randrange(result.start() + 1, result.end())
            content = content[:at] + chance.choice(_INSIDE) + content[at:]
    return content


def _bracket(content: bytes, chance: Chance) -> bytes:
    """Delete or duplicate a bracket, comma, colon or quote."""
    match = _BRACKETS.search(content, chance.place(max(1, len(content))))
    if not match:
        return content
    return content[: match.start()] + match.group() * chance.choice([0, 2]) + content[match.end() :]


def _deep(content: bytes, chance: Chance) -> bytes:
    """Nest a value in very many brackets, closed or not."""
    result = _token(content, chance)
    if not result:
        return content
    opened, depth = chance.choice(_OPEN), chance.choice(_DEPTHS)
    closed = (
        b"".join(_CLOSE.get(c, b"") for c in reversed(opened)) if chance.random() < 0.7 else b""
    )
    value = opened * depth + result.group() + closed * depth
    return content[: result.start()] + value + content[result.end() :]


KINDS = {
    "number": _number,
    "name": _name,
    "token": _other,
    "string": _string,
    "bracket": _bracket,
    "deep": _deep,
}
