"""A server in a container that `docker run` made."""
