"""The witness's report: reading it, and what it shows of placement, traffic and time."""

from assay.witness.report import (
    Report,
    WitnessError,
    as_list,
    parse_cpus,
    read,
    verify_mpi,
    verify_version,
)

__all__ = [
    'Report',
    'WitnessError',
    'as_list',
    'parse_cpus',
    'read',
    'verify_mpi',
    'verify_version',
]
