"""Annotation that runs inside the user's program. Only this package imports torch."""
