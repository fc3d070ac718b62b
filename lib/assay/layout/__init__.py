"""Layouts: where ranks and threads are to sit, and whether they do."""
