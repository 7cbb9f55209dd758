"""Names that are made to share one hash are looked up as fast as others."""

import time

import pytest

from fastprof._core._pools import Names

N = 40_000
# With this constant as the secret, names of 16 bytes that end in it have the same hash.
CONSTANT = (0x9E3779B97F4A7C15).to_bytes(8, "little")


def seconds(pool, items):
    began = time.process_time()
    ids = [pool.intern(item) for item in items]
    assert ids == list(range(len(items)))  # in order of first occurrence, whatever the hash
    return time.process_time() - began


def test_names_that_collided_take_linear_time():
    ordinary = seconds(Names(), [b"%08xabcdefgh" % i for i in range(N)])
    crafted = seconds(Names(), [b"%08x" % i + CONSTANT for i in range(N)])
    assert crafted < 10 * ordinary + 0.2


@pytest.mark.parametrize("end", [b"", CONSTANT])
def test_ids_do_not_depend_on_the_secret(end):
    texts = [b"%08x" % (i % 700) + end for i in range(2000)]
    first, second = Names(), Names()
    assert [first.intern(text) for text in texts] == [second.intern(text) for text in texts]
    assert len(first) == 700
