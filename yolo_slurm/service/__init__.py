"""The process on the controller, and what an administrator asks of the books."""
