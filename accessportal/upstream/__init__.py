"""The sandbox provider (seed 002 calls it ENG CSP), reached over HTTP. Nothing is called where no address is set."""
