"""Reading files: each module says, as data, where a format keeps what; detection by content."""
