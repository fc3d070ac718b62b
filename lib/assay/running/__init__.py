"""A run: what it needs here, its folder and turn, ReFrame as a child, and what is left of it."""
