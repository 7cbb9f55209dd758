"""The lower bound of reading an export: every row is stepped in C and dropped."""
