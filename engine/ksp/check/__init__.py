"""Tree to typed tree: names, types, stages, limits; every mistake that a policy's text can have."""
