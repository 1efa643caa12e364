"""A server that somebody else restarts."""
