"""Access Portal: temporary access that people ask for, others decide, and the portal takes back in time."""
