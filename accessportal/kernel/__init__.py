"""Words everyone shares. Standard library only; imports nothing of ours."""
