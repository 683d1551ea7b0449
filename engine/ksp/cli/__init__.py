"""The command line: options in, text out. Each command imports what it needs when it runs."""
