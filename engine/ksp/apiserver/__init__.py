"""An embedded Kubernetes API server for tests and demos: objects in memory, over real HTTP on a loopback port."""

from ksp.apiserver.server import ApiServer

__all__ = ["ApiServer"]
