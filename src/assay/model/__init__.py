"""Takes nothing and does no I/O. Names fleet, evidence, outcomes, decisions and specs. Gives all rooms their types."""
