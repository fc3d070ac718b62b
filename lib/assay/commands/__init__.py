"""The commands: each with its options."""
