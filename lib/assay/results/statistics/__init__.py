"""Statistics of figures over runs: pure functions on arrays, without files and without words."""
