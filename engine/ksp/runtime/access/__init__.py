"""Who may read what the scheduler serves: TLS, and authentication and authorization that the cluster decides."""
