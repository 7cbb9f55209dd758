"""Reports: pure functions from a Profile to a Table. Nothing here prints."""
