"""The policy and the pure `decide`: no I/O, no clock, no surprises."""
