"""Indexing, embedding, sorting."""
