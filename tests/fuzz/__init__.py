"""Fuzzing with mutated files of every format: `python -m fuzz --help`; tests run a small part."""
