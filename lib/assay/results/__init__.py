"""The results of runs: cases, figures as rows, why cases failed, and the verdict."""
