"""A run: its folder, its turn on the machine, ReFrame as a child, and what that was told."""
