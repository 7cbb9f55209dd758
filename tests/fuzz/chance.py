"""The random numbers of one mutant."""

from __future__ import annotations

import random

GOLDEN = 0.6180339887498949
EXTREMES = [
    *(sign * 2**bits + around for bits in (7, 8, 15, 16, 24, 31, 32, 48, 53, 62, 63)
      for sign in (-1, 1) for around in (-1, 0, 1)),
    *(0, 1, -1, 10, 255, 10**9, 10**15, 10**18, -(10**18)),
]  # fmt: skip
INTEGERS = [number for number in EXTREMES if -(2**63) <= number < 2**63]


class Chance(random.Random):
    """Random numbers that depend on the name of the mutant.

    The first position of consecutive mutants is evenly distributed, so every region is reached.
    """

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name)
        self.number = number
        self._next: float | None = number * GOLDEN % 1

    def __new__(cls, name: str, number: int) -> Chance:
        return super().__new__(cls, name)

    def place(self, n: int) -> int:
        """A number from 0 to n - 1."""
        if self._next is None:
            return self.randrange(n)
        place, self._next = int(self._next * n), None
        return place

    def stretch(self, n: int, most: int) -> slice:
        """A slice of up to `most` adjacent ones of n items."""
        at = self.place(n)
        return slice(at, min(n, at + 1 + int(most ** self.random()) - 1))
