"""The version of fastprof; pyproject.toml reads it."""

__version__ = "0.1.0"
