"""What happened, append-only: one hash chain per entity, written in the transaction of the change that it tells."""
