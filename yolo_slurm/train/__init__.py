"""``yolo-train``: the runtime of a training job, on a compute node.

It imports nothing else of this project, and torch and ultralytics only when the
environment they read is complete.
"""
