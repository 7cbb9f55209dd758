"""Reader of Nsight Systems reports and their SQLite exports."""
