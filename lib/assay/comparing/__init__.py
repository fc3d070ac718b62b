"""Two settings measured in turn: what looks changed, what pairs say of it, and what failed.

Sessions are in the order A B B A, each of one setting, and so of both meet the same spells of
the machine. The first of them only say what to measure again; of that the pairs alone decide.
"""
