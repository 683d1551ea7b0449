"""Writing: bindings and how they are settled, conditions and nominations of pods."""
