"""What Slurm's own daemons run: the prolog/epilog hook."""
