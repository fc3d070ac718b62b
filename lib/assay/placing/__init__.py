"""Where the ranks of a program should sit, what that gains, and whether they sat so."""
