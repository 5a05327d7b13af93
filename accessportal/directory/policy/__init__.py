"""Pure rules of the directory: what may be written, what counts, and who may do what."""
