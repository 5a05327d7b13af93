"""Reads of the API tokens for the faces."""
