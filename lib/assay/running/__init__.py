"""Running ReFrame: what it needs here, its options, folders, supervision and leftovers."""
