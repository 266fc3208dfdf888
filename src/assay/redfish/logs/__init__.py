"""Takes a session with a BMC and a cursor for each log. Gives the new entries of all its event logs, oldest first."""
