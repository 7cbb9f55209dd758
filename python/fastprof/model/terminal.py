"""Text on a terminal: the width of characters, names cut in the middle, colours, bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex

_CUT: Final = "…"
_STYLE: Final = regex(r"\x1b\[[\d;]*m")


def width_of(text: str) -> int:
    """The columns of a terminal that a text takes; wide characters take two, accents none."""
    if "\x1b" in text:
        text = _STYLE.sub("", text)
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def padded(text: str, width: int, to_the_left: bool) -> str:
    """The text with spaces after it, or before it, to a width."""
    spaces = " " * (width - width_of(text))
    return text + spaces if to_the_left else spaces + text


def _first(text: str, width: int) -> str:
    """The first characters that fit a width."""
    if text.isascii():
        return text[: max(width, 0)]
    while width_of(text) > width:
        text = text[:-1]
    return text


def _last(text: str, width: int) -> str:
    """The last characters that fit a width."""
    if text.isascii():
        return text[max(len(text) - width, 0) :]
    while width_of(text) > width:
        text = text[1:]
    return text


def cut(text: str, width: int, share_of_start: float = 0.0) -> str:
    """The text in at most so many columns; what is left out becomes `…`.

    share_of_start : of the characters that stay, the share from the start: 0 keeps the end
    """
    if width_of(text) <= width:
        return text
    head = _first(text, round((width - 1) * share_of_start))
    return head + _CUT + _last(text, width - 1 - width_of(head))


MIDDLE: Final = 0.6  # the share of the start that names keep
_OTHERS: Final = (0.3, 0.0, 0.8, 1.0, MIDDLE)  # tried if two texts become equal


def cut_all(texts: Sequence[str], width: int, share_of_start: float) -> list[str]:
    """The texts in at most so many columns each; different texts stay different where possible.

    share_of_start : as in `cut`, unless that makes two equal
    """
    if all(width_of(text) <= width for text in texts):
        return list(texts)
    n = len(set(texts))
    best: list[str] = []
    for share in (share_of_start, *_OTHERS):
        result = [cut(text, width, share) for text in texts]
        if len(set(result)) == n:
            return result
        if len(set(result)) > len(set(best)):
            best = result
    return best


# The escapes that Colours writes, and the beginning of one at the end of a text.
OWN_STYLES: Final = regex("(\x1b\\[(?:0|1|2|36|1;33)m)")
OPEN_STYLE: Final = regex(r"\x1b(?:\[[\d;]*)?\Z")


@dataclass(frozen=True)
class Colours:
    """Styles of text: ANSI escapes, or nothing if they are off."""

    are_on: bool = False

    def strong(self, text: str) -> str:
        """What the reader sees first."""
        return self._styled("1", text)

    def weak(self, text: str) -> str:
        """What weighs little."""
        return self._styled("2", text)

    def mark(self, text: str) -> str:
        """A finding."""
        return self._styled("1;33", text)

    def bar(self, text: str) -> str:
        """A bar."""
        return self._styled("36", text)

    def _styled(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.are_on and text.strip() else text


PLAIN: Final = Colours()

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int) -> str:
    """A bar of a share of a width, to an eighth of a character; longer ones are cut."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + _EIGHTHS[rest].strip()).ljust(width)


Style = Callable[[str], str]
