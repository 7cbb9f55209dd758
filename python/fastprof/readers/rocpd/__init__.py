"""Readers of the recordings of AMD's profilers."""
