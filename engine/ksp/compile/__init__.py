"""Typed tree to Python functions: one for each rule, nested by stage; views; footprints."""
