"""active, to be written next."""
