"""The flags of `ksp run`: one table, and what reads a command line by it as kube-scheduler reads its own.

`table` has the flags, `values` how a value is written, `command` the parser and `--help`, `given` what somebody wrote.
"""
