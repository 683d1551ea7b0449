"""One of several schedulers leads: client-go's election by a Lease, and a fence for those who have lost it."""
