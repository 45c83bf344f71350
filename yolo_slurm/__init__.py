"""GPU time as a currency on Slurm."""

__version__ = "0.1.0"
