"""Runs on a schedule: when there is none, what is remembered of them, and who is notified."""
