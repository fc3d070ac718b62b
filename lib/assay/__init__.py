"""Assay: regression tests for HPC systems, built on ReFrame."""

__version__ = '0.1.0'


class AssayError(Exception):
    """Something foreseeable is wrong; the message says what, where, and what to do."""
