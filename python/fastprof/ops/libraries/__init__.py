"""Operators of libraries beside torch: a module or a package for each."""
