"""Some runs compared with others: verdicts, causes, and what ended otherwise."""
