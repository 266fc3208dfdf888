"""Judging: checks are pytest functions in `suites/`, evidence and specs go in, exactly one outcome each comes out."""
