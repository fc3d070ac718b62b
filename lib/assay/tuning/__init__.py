"""The algorithms of an MPI's collective operations against its default, and rules for the better.

A job starts the program many times, the default between the algorithms, so that all meet the same
spells of the machine (:mod:`assay.tuning.starts`, checks/mpi/tune.py). Some rounds of it choose
candidates (:mod:`assay.tuning.choosing`); whether one is better is then decided by new starts, in
pairs A B B A with the rules in force, as `assay compare-settings` decides.
"""
