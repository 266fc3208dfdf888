"""Takes a fleet, nodes and phases; cuts them into shards, runs these as local processes or a Slurm array, resumes and rejudges; gives one complete run file."""
