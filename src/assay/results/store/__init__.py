"""The store of a run: one SQLite file with what was asked, every outcome and every measurement, in narrow rows."""
