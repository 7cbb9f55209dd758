"""Reader of SQLite files of NVProf."""
