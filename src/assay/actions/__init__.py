"""Effects on the world, each verified by reading the world again."""
