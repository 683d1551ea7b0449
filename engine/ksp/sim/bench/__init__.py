"""How fast the core decides: workloads, what is measured of them, and how two measurements compare."""
