"""Takes evidence and the fleet's checks. Does the verbs that run, repeat and report them. Gives outcomes of runs."""
