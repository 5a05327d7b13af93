"""The only user of the items of the pool of accounts."""
