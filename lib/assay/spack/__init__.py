"""Spack: the tool, its environments, and what it built for checks."""
