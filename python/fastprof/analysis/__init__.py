"""What follows from the columns of a Profile, and the data for it. Pure: no printing, no files."""
