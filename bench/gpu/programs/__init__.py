"""Training and serving programs with known faults; each option mends one, or adds one."""
