"""A mutant: its name determines its random numbers and content."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fuzz import of_bytes, of_databases, of_gzip, of_pages, of_shapes, of_text, of_traces
from fuzz.chance import Chance
from fuzz.corpus import DICT, GZIP, KINETO, NSYS, NVPROF, ROCPD, ROCPROF, RPD, Seed

Mutate = Callable[[bytes, Chance], bytes]

_SQLITE = of_bytes.KINDS | of_pages.KINDS | of_databases.KINDS
# The mutations of each format, by name.
KINDS: Mapping[str, Mapping[str, Mutate]] = {
    NSYS: _SQLITE,
    NVPROF: _SQLITE,
    ROCPD: _SQLITE,
    RPD: _SQLITE,
    KINETO: of_bytes.KINDS | of_text.KINDS | of_traces.KINDS,
    ROCPROF: of_bytes.KINDS | of_text.KINDS,
    GZIP: of_bytes.KINDS | of_gzip.KINDS,
    DICT: of_bytes.KINDS | of_text.KINDS,
}


@dataclass(frozen=True)
class Mutant:
    """Mutant `number` of a kind, made from a seed."""

    seed: str
    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.seed}/{self.kind}/{self.number}"

    @classmethod
    def named(cls, name: str) -> Mutant:
        """The mutant whose `str` this is."""
        seed, kind, number = name.split("/")
        return cls(seed, kind, int(number))

    def content(self, seeds: Mapping[str, Seed]) -> bytes:
        """The content; it depends only on the name and the seeds."""
        seed = seeds[self.seed]
        make = (KINDS[seed.format] | of_shapes.KINDS)[self.kind]
        return make(seed.content, Chance(str(self), self.number))

    @property
    def is_shape(self) -> bool:
        """Whether it is large."""
        return self.kind in of_shapes.KINDS


def mutants(seeds: Mapping[str, Seed], n: int, seed: int) -> list[Mutant]:
    """n mutants, evenly distributed over seeds and kinds; `seed` selects others."""
    ways = [(seed.name, kind) for seed in seeds.values() for kind in KINDS[seed.format]]
    random.Random(seed).shuffle(ways)
    first = seed * 1_000_000
    return [Mutant(*ways[i % len(ways)], first + i // len(ways)) for i in range(n)]


def shapes(part: float = 1) -> list[Mutant]:
    """All large files, optionally with a fraction of the rows."""
    return [Mutant(seed, kind, int(n * part)) for kind, (seed, n, _) in of_shapes.SHAPES.items()]
