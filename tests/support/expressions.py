"""What regular expressions match, for words that are looked for before them."""

import re

_GROUP = re.compile(r"\((?P<look>\?<?[=!])?(?:\?i?:)?(?P<body>[^()]*)\)(?P<optional>[?*])?")


def alternatives(pattern: str) -> list[str]:
    """Texts of which each match of a pattern contains one, but for classes and repeats.

    A group stands for each of its alternatives; what is optional or beside the match is left out.
    """
    pattern = re.sub(r"\\[()|]", "", pattern)
    texts = [re.sub(r"\[(\w)(?i:\1)\]", r"\1", pattern)]  # of both cases of a letter
    while any(map(_GROUP.search, texts)):
        texts = [longer for text in texts for longer in _opened(text)]
    return [part for text in texts for part in text.split("|")]


def _opened(text: str) -> list[str]:
    """The texts of a pattern without its first group that contains none."""
    group = _GROUP.search(text)
    if group is None:
        return [text]
    left_out = group["look"] or group["optional"]
    bodies = [""] if left_out else group["body"].split("|")
    return [text[: group.start()] + body + text[group.end() :] for body in bodies]
