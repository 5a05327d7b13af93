"""One durable first-come line for each pool: who waits for a sandbox or an account, in order."""
