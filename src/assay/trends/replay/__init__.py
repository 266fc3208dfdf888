"""Plays a history of faults under a policy: the real deciding, in a world whose time is that of the history."""
