"""A private real Slurm on one host, for the demo and the tests.

munge, MariaDB, slurmdbd, slurmctld and several slurmds with fake GPUs live in
one directory, on ports of their own, and touch nothing outside it.
"""
