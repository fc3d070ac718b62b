"""Reading the report of the witness from its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from assay import AssayError
from assay.files import explain_errors
from assay.witness.report import SCHEMA, EndedRank, Finalized, KeptPlan, Lines, Report

Beside = TypeVar('Beside', EndedRank, Finalized)

#: In the folder of a job: the scheduler's names of its hosts, where they call themselves otherwise.
HOSTS = 'hosts.json'

#: Why there is no more in the report of a program that never called ``MPI_Init``.
OF_SESSIONS = 'the program uses MPI sessions without MPI_Init: of these the witness records nothing'


class WitnessError(AssayError):
    """A report cannot be used; the message names the file and, where one is wrong, the field."""


def read_witness(path: Path) -> Report:
    """Read and validate a report, and what ranks that ended early left beside it.

    Its hosts have the names that :data:`HOSTS` gives them, in its folder or in the one above.

    :raises WitnessError: if there is none, or it is not one.
    """
    with explain_errors(path, 'read', WitnessError):
        if not path.exists():
            raise WitnessError(
                f'no witness report {path}: was the library preloaded into the program?'
            )
        text = path.read_bytes()
    try:
        report = Report.model_validate_json(text)
    except ValidationError as error:
        problems = OF_SESSIONS if _is_of_sessions(text) else _problems(error)
        raise WitnessError(f'{path}: {problems}') from None
    beside = {
        'ended': _read_lines(path.with_name(f'{path.name}.ranks'), EndedRank),
        'finalized': _read_lines(path.with_name(f'{path.name}.finalized'), Finalized),
        'lines': _lines_of_sites(path.with_name(f'{path.name}.lines')),
        'plan': _plan(path.with_name(f'{path.name}.plan'), report),
    }
    return with_host_names(report, names_in(path.parent)).model_copy(update=beside)


def names_in(folder: Path) -> dict[str, str]:
    """The scheduler's names of a job's hosts, of those that it calls otherwise.

    :param folder: of the job, or of one of its launches.
    """
    for path in (folder / HOSTS, folder.parent / HOSTS):
        if path.is_file():
            try:
                return {str(host): str(name) for host, name in json.loads(path.read_text()).items()}
            except (OSError, ValueError, AttributeError):
                return {}
    return {}


def with_host_names(report: Report, names: Mapping[str, str]) -> Report:
    """A report whose hosts have other names, each one of its own."""
    hosts = [names.get(host.name, host.name) for host in report.hosts]
    if not names or len({*hosts}) < len(hosts):
        return report
    return report.model_copy(
        update={
            'hosts': [
                host.model_copy(update={'name': name})
                for host, name in zip(report.hosts, hosts, strict=True)
            ],
            'processes': [
                one.model_copy(update={'host': names.get(one.host, one.host)})
                for one in report.processes
            ],
        }
    )


def _read_lines(path: Path, kind: type[Beside]) -> list[Beside]:
    """Read the lines that ranks appended to a file beside the report."""
    lines: list[str] = []
    with explain_errors(path, 'read', WitnessError), suppress(FileNotFoundError):
        lines = path.read_text(errors='replace').splitlines(keepends=True)
    # A line without an end is one that a rank was killed at.
    whole = [line for line in lines if line.endswith('\n') and line.strip()]
    found = []
    for number, line in enumerate(whole, 1):
        try:
            found.append(kind.model_validate_json(line))
        except ValidationError as error:
            # Hosts append at once after a slow MPI_Finalize, and NFS does not keep them apart.
            if kind is not Finalized:
                raise WitnessError(f'{path}: line {number}: {_problems(error)}') from None
    return sorted(found, key=lambda one: one.rank)


def _lines_of_sites(path: Path) -> Lines:
    """Read the source lines of sites that were looked up after the job; empty if they were not."""
    try:
        return TypeAdapter(Lines).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}


def _plan(path: Path, report: Report) -> KeptPlan | None:
    """The plan that was kept of this job, and not of one that was there before: to be drawn."""
    try:
        found = KeptPlan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    ranks = [*range(report.ranks)]
    seats = sorted(one.seat_of for one in found.ranks)
    is_whole = seats == [one.rank for one in found.ranks] == ranks
    return found if found.started == report.started and is_whole else None


def _is_of_sessions(text: bytes) -> bool:
    """Whether the witness wrote that there were sessions alone; for what is no whole report."""
    try:
        return json.loads(text).get('sessions') is True
    except (ValueError, AttributeError):
        return False


def _problems(error: ValidationError) -> str:
    """The faults of a report, with the names of the fields; only the first few."""
    problems = []
    for one in error.errors(include_url=False):
        if one['type'] == 'json_invalid':
            return f'not JSON: {one["ctx"]["error"]}'
        if one['loc'] == ('schema',) and one['type'] == 'literal_error':
            return f'it has schema {one["input"]!r}, and this Assay reads schema {SCHEMA}'
        where = '.'.join(map(str, one['loc']))
        words = str(one['ctx']['error']) if one['type'] == 'value_error' else one['msg']
        problems.append(f'{where}: {words}' if where else words)
    more = f' (and {len(problems) - 3} more)' if len(problems) > 3 else ''
    return 'not a report of the witness: ' + '; '.join(problems[:3]) + more
