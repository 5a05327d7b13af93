"""Who had access to what, from when to when: intervals that are derived from the audit log, and can be made anew from it."""
