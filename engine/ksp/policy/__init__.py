"""Files of rules to profiles: what the core runs."""
