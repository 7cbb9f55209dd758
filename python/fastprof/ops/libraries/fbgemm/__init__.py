"""Recommendation models: embedding tables and jagged features of fbgemm."""
