"""The append-only history, and the outcomes of every run."""
