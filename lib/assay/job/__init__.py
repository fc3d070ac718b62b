"""What a job left: its output, the start of its program, and how it ended."""
