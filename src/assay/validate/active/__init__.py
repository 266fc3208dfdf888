"""Takes the digests that the GPUs of a node computed, and golden ones. Compares them. Gives the GPUs that are wrong."""
