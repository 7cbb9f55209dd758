"""Data movement, views, types."""
