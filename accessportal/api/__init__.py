"""The HTTP API of machine clients under ``/v1/``: the sandbox pool for lab tracks, and its care."""
