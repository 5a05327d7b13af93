"""What happened, outside: each day's events in files that are never rewritten, with a signed digest."""
