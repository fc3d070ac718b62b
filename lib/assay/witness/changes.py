"""Differences between the reports of two jobs: of the program, or of what it ran on."""

from __future__ import annotations

from assay.witness.profile import figures, summarise_calls
from assay.witness.report import OLD_SCHEMA, OLD_VARIABLES, Report
from assay.witness.settings import OF_LIBRARIES, facts, known_to_both, machine_facts

# Calls that a program repeats until something has happened: their number says nothing of it.
POLLING = {
    f'MPI_{name}'
    for name in (
        *('Test', 'Testall', 'Testany', 'Testsome', 'Waitsome'),
        *('Iprobe', 'Improbe', 'Win_test', 'Request_get_status'),
        *('Request_get_status_all', 'Request_get_status_any', 'Request_get_status_some'),
    )
}


def program_changes(one: Report, other: Report) -> list[str]:
    """Differences that only another program, or another use of it, makes."""
    found = []
    if one.command != other.command:
        found.append(f'command changed: {" ".join(one.command)} -> {" ".join(other.command)}')
    if one.ranks != other.ranks:
        found.append(f'ranks changed: {one.ranks} -> {other.ranks}')
    if one.has_matrix and other.has_matrix:
        before, after = figures(one), figures(other)
        if before.messages != after.messages:
            found.append(f'program changed: {before.messages} -> {after.messages} messages')
    if one.complete and other.complete:
        calls = {call.name: call for call in summarise_calls(one)}
        others = {call.name: call for call in summarise_calls(other)}
        # Before 2026-11-28 the witness wrote none of MPI-IO: 0 of all such calls is not known.
        knows_files = all(
            any(call.bytes for name, call in its.items() if name.startswith('MPI_File_'))
            for its in (calls, others)
        )
        for name in sorted({*calls, *others} - POLLING):
            for what, unit in (('count', 'calls'), ('bytes', 'bytes')):
                old = getattr(calls.get(name), what, 0)
                new = getattr(others.get(name), what, 0)
                if what == 'bytes' and name.startswith('MPI_File_') and not knows_files:
                    continue
                if old != new:
                    found.append(f'program changed: {name} {old} -> {new} {unit}')
    return found


def setting_changes(one: Report, other: Report) -> list[str]:
    """Differences in MPI, libraries, variables, settings and machines, of any rank."""
    found = []
    for name in ('library', 'path', 'thread_level'):
        old, new = (of_all_ranks(report, name) for report in (one, other))
        if old != new:
            found.append(f'MPI {name.replace("_", " ")} changed: {old} -> {new}')
    before, after = one.variables(), other.variables()
    names = sorted({*before, *after})
    if OLD_SCHEMA in (one.schema_, other.schema_):
        found.append(
            'a report is of an earlier witness: it has no variables but those of OpenMP, and '
            'counts receives as bytes of MPI_Start and MPI_Startall'
        )
        names = [name for name in names if name.startswith(OLD_VARIABLES)]
    for name in names:
        old, new = before.get(name, 'unset'), after.get(name, 'unset')
        if old != new:
            found.append(f'environment changed: {name}: {old} -> {new}')
    if all(its.build_id is None for report in (one, other) for its in report.libraries):
        # Of earlier witnesses, whose libraries are no settings.
        was, now = ({its.path for its in report.libraries} for report in (one, other))
        for path in sorted(was ^ now):
            found.append(f'library {"no longer" if path in was else "newly"} loaded: {path}')
    found += _changed_settings(one, other)
    machine = machine_facts(other)
    for name, old in machine_facts(one).items():
        # What could not be read is not known to be different.
        if old and machine[name] and old != machine[name]:
            found.append(f'machine changed: {name.replace("_", " ")}: {old} -> {machine[name]}')
    return found


def _changed_settings(one: Report, other: Report) -> list[str]:
    """Settings beside variables; none if one of the witnesses did not look for them."""
    if not (one.settings and other.settings):
        return []
    before, after = known_to_both(facts(one), facts(other), OF_LIBRARIES)
    return [
        f'setting changed: {name}: {before.get(name, "not set")} -> {after.get(name, "not set")}'
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def of_all_ranks(report: Report, name: str) -> str:
    """A fact of the MPI; of ranks that differ each one's, in its first line."""
    first = getattr(report.mpi, name)
    facts = dict.fromkeys(p.differs.mpi.get(name, first) for p in report.processes)
    return ', '.join(fact.strip().partition('\n')[0] for fact in facts)
