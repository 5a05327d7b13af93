"""Programs that call the API: their tokens, and how often each may ask."""
