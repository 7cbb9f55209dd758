"""Trace files of all formats to a `Recording`, and dict lines to columns."""
