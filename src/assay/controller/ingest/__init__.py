"""Looking and judging: evidence, runs, parts, and the faults that come of them or are heard."""
