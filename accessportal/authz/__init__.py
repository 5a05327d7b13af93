"""Scoped approvals and relationships with an end: who may do what, and who stands in which relation to what, here and now."""
