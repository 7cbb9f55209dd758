"""Serving engines: their iterations, and the stage of each kernel."""
