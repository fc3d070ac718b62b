"""The witness's report: reading it, and what it shows of placement, traffic and time."""

from assay.witness.library import verify_mpi, verify_version
from assay.witness.reading import HOSTS, WitnessError, names_in, read_witness, with_host_names
from assay.witness.report import Report

__all__ = [
    'HOSTS',
    'Report',
    'WitnessError',
    'names_in',
    'read_witness',
    'verify_mpi',
    'verify_version',
    'with_host_names',
]
