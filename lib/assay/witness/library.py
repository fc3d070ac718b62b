"""Which MPI library a job ran on, by the witness's report."""

from __future__ import annotations

import re

from assay.witness.report import Report


def verify_mpi(report: Report, library: str, name: str) -> str | None:
    """Hold the MPI libraries of all ranks against the one asked for.

    :param library: expression that its MPI_Get_library_version matches.
    :param name: what messages call it.
    :returns: None, or one sentence that says what was used instead.
    """
    if not re.search(library, report.mpi.library, re.MULTILINE):
        return (
            f'{name} was asked for, but the program ran on {_first_line(report.mpi.library)!r} '
            f'({report.mpi.path})'
        )
    # Ranks may ask for different thread levels.
    same = report.mpi.model_dump(exclude={'thread_level'}).items()
    unlike = [p for p in report.processes if not same <= {**dict(same), **p.differs.mpi}.items()]
    if not unlike:
        return None
    first = unlike[0]
    seen = {**dict(same), **first.differs.mpi}
    more = f' (and {len(unlike) - 1} more)' if len(unlike) > 1 else ''
    return (
        f'rank {first.rank} on {first.host}{more} uses another MPI than rank 0: '
        f'{_first_line(seen["library"])!r} ({seen["path"]}) instead of '
        f'{_first_line(report.mpi.library)!r} ({report.mpi.path})'
    )


def verify_version(report: Report, claimed: str, environment: str) -> str | None:
    """Hold the version of the MPI that ran against the one that the configuration claims.

    :param claimed: such as 5.0.8; of 5.0 any 5.0.x is one.
    :param environment: ReFrame's name of where that stands.
    :returns: None, or one sentence that says what ran.
    """
    # Open MPI v5.0.9, package: ...; MPICH Version: 4.3.2; Intel(R) MPI Library 2021.16 for Linux
    ran = re.search(r'\d+\.[\w.+-]*\w', report.mpi.library)
    parts = claimed.split('.')
    if ran and ran[0].split('.')[: len(parts)] == parts:
        return None
    ran_on, _, _ = _first_line(report.mpi.library).partition(',')
    return (
        f'environment {environment} says version {claimed} of its MPI, but the program ran on '
        f'{ran_on!r} ({report.mpi.path}): correct extras.version in the configuration, or what the '
        f'environment loads'
    )


def _first_line(text: str) -> str:
    return text.strip().partition('\n')[0].strip()
