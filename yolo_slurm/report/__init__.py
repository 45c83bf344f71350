"""What was used and what is left, for any user, from Slurm alone."""
