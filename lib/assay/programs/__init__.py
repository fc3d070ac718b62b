"""The problems given to programs, their output, and the figures in it."""
