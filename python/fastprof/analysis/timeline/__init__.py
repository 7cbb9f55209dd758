"""The time line of a step or of any stretch of a capture."""
