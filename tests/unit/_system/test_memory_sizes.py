"""Sizes in bytes, as options and environment variables take them."""

import pytest

from fastprof._system.memory import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("7", 7),
        ("5K", 5 << 10),
        (" 512m ", 512 << 20),
        ("1.5GiB", 3 << 29),
        ("2TB", 2 << 40),
        ("", None),
        ("much", None),
        ("-1", None),
        ("1e6", None),
        ("4 G", None),
    ],
)
def test_units_are_powers_of_1024(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("size", [1, 10**6, (1 << 30) - 1, 1 << 30, 5 * 10**10])
def test_formatted_sizes_are_rounded_up_and_can_be_parsed(size):
    parsed = parse_size(format_size(size))
    assert size <= parsed <= 1.1 * size + (1 << 20)
