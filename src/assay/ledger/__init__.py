"""The append-only history of everything that was seen, decided and done. Knows the nouns and nothing else."""
