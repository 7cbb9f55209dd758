"""What host threads do: operators, API calls, first use, waits."""
