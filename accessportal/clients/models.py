"""The ApiTokens item and its keys."""
