"""What is due by the clock, and the work that is done because it is due."""
