"""Events of the API: made, counted together, rate limited, sent in the background."""
