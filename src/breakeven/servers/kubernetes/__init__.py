"""A server in a Deployment or StatefulSet."""
