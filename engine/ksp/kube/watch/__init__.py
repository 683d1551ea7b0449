"""Reading: what the server has (discovery), list and watch (the reflector), and the informers that hold it."""
