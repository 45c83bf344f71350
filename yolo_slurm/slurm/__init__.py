"""The only room that knows Slurm."""
