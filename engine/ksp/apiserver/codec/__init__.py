"""Objects as a Go server reads and writes them: the table of types, quantities, times."""
