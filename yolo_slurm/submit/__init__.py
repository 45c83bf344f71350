"""Request -> plan -> script -> job id. Only the last step touches the world."""
