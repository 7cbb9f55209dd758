"""A mapping of numbers in arrays answers as a dict does."""

import numpy as np
import pytest

from fastprof.model.arrays import ByNumber, place_in


@pytest.fixture
def mapping():
    return ByNumber(np.array([0, 3, 7], np.int64), np.array([1, 0, 1], np.int32), ["a", "b"])


def test_it_equals_the_dict_of_the_same_values(mapping):
    same = {0: "b", 3: "a", 7: "b"}
    assert mapping == same and dict(mapping) == same and repr(mapping) == repr(same)
    assert list(mapping) == [*same] and len(mapping) == 3
    assert list(mapping.values()) == [*same.values()]
    assert list(mapping.items()) == [*same.items()]
    assert mapping != {0: "b", 3: "a"}


def test_other_numbers_are_missing(mapping):
    assert mapping.get(4) is None and 8 not in mapping and 3 in mapping
    for number in (-1, 1, 8):
        with pytest.raises(KeyError):
            mapping[number]


def test_a_place_is_that_among_ascending_numbers():
    numbers = np.array([2, 5, 9])
    assert [place_in(numbers, each) for each in (2, 5, 9)] == [0, 1, 2]
    with pytest.raises(KeyError):
        place_in(numbers[:0], 2)
