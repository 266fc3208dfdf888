"""Where Slurm places the jobs: its own programs are asked and told, and nothing of it is linked."""
