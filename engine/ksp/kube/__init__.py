"""The edge to a Kubernetes API server: all HTTP and JSON."""
