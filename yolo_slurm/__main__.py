"""``python -m yolo_slurm`` is ``yolo-slurm``."""

from yolo_slurm.cli.main import main

if __name__ == "__main__":
    main()
