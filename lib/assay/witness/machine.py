"""What the hosts of a job are and how they are set, in words."""

from __future__ import annotations

from assay.text import fold_nodes
from assay.witness.report import Machine, Report


def machine_facts(report: Report) -> dict[str, str]:
    """What the hosts of a job are, by the name of the field; empty where nobody could read it.

    Hosts that differ stand behind what each has, in the order of the words:
    ``6.1.0 (n[1-2]), 6.5.0 (n3)``. The same hosts give the same text, whichever rank 0 is on.
    """
    return {name: _of_all(report, name) for name in Machine.model_fields}


def _of_all(report: Report, name: str) -> str:
    hosts: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.machine and (value := ' '.join(getattr(host.machine, name).split())):
            hosts.setdefault(value, []).append(host.name)
    if [len(report.hosts)] == [len(names) for names in hosts.values()]:
        return next(iter(hosts))
    return ', '.join(f'{value} ({fold_nodes(hosts[value])})' for value in sorted(hosts))
