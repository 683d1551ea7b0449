"""An embedded Kubernetes API server, good enough for kubectl and for tests."""
