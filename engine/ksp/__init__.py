"""ksp: a Kubernetes scheduler whose rules are text."""

__version__ = "0.1.0"
