"""Matrix decompositions and linear solvers."""
