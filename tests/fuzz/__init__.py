"""Files of every format, mutated: `python -m fuzz --help`, and a short slice among the tests."""
