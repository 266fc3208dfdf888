"""Takes nothing and does no I/O. Names the parts of a load. Gives schedules, checks and the probe the same names."""
