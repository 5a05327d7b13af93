"""IAM Identity Center assignments, each held by a set of claims: it exists exactly while some claim lives."""
