"""Every text of a range has a meaning and is read in bounded time."""

import time

import pytest

from fuzz import markers, of_bytes, of_text
from fuzz.chance import Chance

N_TEXTS = 60  # of each kind, of each seed


@pytest.mark.parametrize("kind", of_text.KINDS | of_bytes.KINDS)
def test_mutated_range_names_are_read(kind):
    mutate = (of_text.KINDS | of_bytes.KINDS)[kind]
    for i, seed in enumerate(markers.SEEDS):
        for number in range(N_TEXTS):
            chance = Chance(f"{i}/{kind}/{number}", number)
            text = mutate(seed.encode(), chance).decode("utf-8", "surrogateescape")
            began = time.thread_time()
            markers.check(text)
            assert time.thread_time() - began < 5, text[:200]
