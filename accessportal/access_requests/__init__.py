"""The one workflow for every kind of access: ask, decide, grant, extend, end, revoke, prove."""
