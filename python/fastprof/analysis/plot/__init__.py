"""Charts with matplotlib: `profile.plot` and `roofline --plot`."""
