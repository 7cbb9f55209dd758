"""Mutations of the pages of an SQLite file (https://www.sqlite.org/fileformat2.html)."""

from fuzz.chance import Chance

_HEADER = 100


class _Pages:
    """The pages of a file, to be changed individually."""

    def __init__(self, content: bytes) -> None:
        size = int.from_bytes(content[16:18], "big")
        self.size = 65536 if size == 1 else size
        self.pages = [
            bytearray(content[at : at + self.size]) for at in range(0, len(content), self.size)
        ]

    def __len__(self) -> int:
        return len(self.pages)

    def content(self) -> bytes:
        return b"".join(self.pages)

    def head(self, number: int) -> int:
        """The offset of the header of a B-tree page."""
        return _HEADER if number == 0 else 0

    def cells(self, number: int) -> list[int]:
        """The offsets of the cell pointers of a B-tree page; none for other pages."""
        page, head = self.pages[number], self.head(number)
        if page[head] not in (2, 5, 10, 13):
            return []
        start = head + (12 if page[head] in (2, 5) else 8)
        n = int.from_bytes(page[head + 3 : head + 5], "big")
        return [at for at in range(start, start + 2 * n, 2) if at + 2 <= len(page)]


def _zeroed(content: bytes, chance: Chance) -> bytes:
    pages = _Pages(content)
    number = chance.place(len(pages))
    pages.pages[number] = bytearray(len(pages.pages[number]))
    return pages.content()


def _filled(content: bytes, chance: Chance) -> bytes:
    pages = _Pages(content)
    number = chance.place(len(pages))
    page = pages.pages[number]
    pages.pages[number] = bytearray(
        chance.choice([b"\xff" * len(page), chance.randbytes(len(page))])
    )
    return pages.content()


def _copied(content: bytes, chance: Chance) -> bytes:
    pages = _Pages(content)
    pages.pages[chance.place(len(pages))] = pages.pages[chance.randrange(len(pages))]
    return pages.content()


def _swapped(content: bytes, chance: Chance) -> bytes:
    pages = _Pages(content)
    one, other = chance.place(len(pages)), chance.randrange(len(pages))
    pages.pages[one], pages.pages[other] = pages.pages[other], pages.pages[one]
    return pages.content()


def _removed(content: bytes, chance: Chance) -> bytes:
    """Remove or duplicate a page, with or without an updated header."""
    pages = _Pages(content)
    number = chance.place(len(pages))
    pages.pages[number : number + 1] = [pages.pages[number]] * chance.choice([0, 2])
    if pages.pages and chance.random() < 0.7:
        pages.pages[0][28:32] = len(pages).to_bytes(4, "big")
    return pages.content()


def _head(content: bytes, chance: Chance) -> bytes:
    """Change a page header: its kind, free blocks, number of cells, start of cells."""
    pages = _Pages(content)
    number = chance.place(len(pages))
    page, head = pages.pages[number], pages.head(number)
    for _ in range(chance.choice([1, 1, 2])):
        at = min(head + chance.randrange(12), len(page) - 1)
        page[at] = chance.choice([0, 1, 2, 5, 10, 13, 255, chance.randrange(256)])
    return pages.content()


def _pointers(content: bytes, chance: Chance) -> bytes:
    """Move cells, also onto another cell or beyond the page."""
    pages = _Pages(content)
    number = chance.place(len(pages))
    page, cells = pages.pages[number], pages.cells(number)
    if cells:
        at, other = chance.choice(cells), chance.choice(cells)
        moved = chance.choice([0, 1, 8, pages.size - 1, pages.size, chance.randrange(pages.size)])
        if chance.random() < 0.5:
            page[at : at + 2] = page[other : other + 2]
        else:
            page[at : at + 2] = (moved & 0xFFFF).to_bytes(2, "big")
        if chance.random() < 0.3:
            cells[:] = chance.sample(cells, len(cells))
    return pages.content()


def _cells(content: bytes, chance: Chance) -> bytes:
    """Change the start of a cell: its length, row id, child page, types of values."""
    pages = _Pages(content)
    number = chance.place(len(pages))
    page, cells = pages.pages[number], pages.cells(number)
    for _ in range(chance.choice([1, 2, 6]) if cells else 0):
        at = chance.choice(cells)
        at = int.from_bytes(page[at : at + 2], "big") + chance.randrange(24)
        if at < len(page):
            page[at] = chance.choice([0, 1, 6, 7, 8, 9, 12, 13, 127, 128, 255, page[at] ^ 1])
    return pages.content()


def _header(content: bytes, chance: Chance) -> bytes:
    out = bytearray(content)
    out[chance.place(min(_HEADER, len(out)))] = chance.choice(
        [0, 1, 2, 3, 4, 255, chance.randrange(256)]
    )
    return bytes(out)


KINDS = {
    "page-zeroed": _zeroed,
    "page-filled": _filled,
    "page-copied": _copied,
    "page-swapped": _swapped,
    "page-removed": _removed,
    "page-head": _head,
    "cell-pointers": _pointers,
    "cell-heads": _cells,
    "header": _header,
}
