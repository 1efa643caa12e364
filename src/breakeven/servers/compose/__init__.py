"""A server that is a service of Docker Compose."""
