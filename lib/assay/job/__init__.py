"""Results of a job: its output, the start of its program, and how it ended."""
