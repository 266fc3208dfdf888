"""What merging would do to the fleet: two revisions compared, and the work that follows, in waves. No I/O."""
