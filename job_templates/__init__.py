"""Batch script templates, rendered by `yolo_slurm.submit.script`."""
