"""What the screenings before the first run left open: by the journal and the contract alone.

A screening sees what its MPI and its fabric let it see, so only one of the same environment and
fabric, of all nodes of the contract, clears what another one found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from assay.acceptance.contract import Contract
from assay.acceptance.journal import Entry
from assay.report.screening import node_set
from assay.spelling import many
from assay.text import plain


@dataclass(frozen=True)
class Screened:
    """What all screenings before the first run tell together.

    :param open: the entries of the journal whose findings no later one cleared.
    :param found: what they found, in words; empty for nothing.
    :param left_out: what the last one left out, in words, if none was of all nodes.
    :param nodes: of the last one of all nodes.
    :param unjudged: those of them that nothing could judge, in words.
    :param is_judged: whether any node could be.
    """

    open: tuple[Entry, ...]
    found: str
    left_out: str
    nodes: frozenset[str]
    unjudged: str
    is_judged: bool


def screened(contract: Contract, entries: Iterable[Entry]) -> Screened | None:
    """What the screenings before the first run tell; None if there were none."""
    before: list[Entry] = []
    for entry in entries:
        if entry.kind == 'started':
            break
        if entry.kind == 'screened':
            before.append(entry)
    if not before:
        return None
    before.sort(key=lambda entry: str(entry.what['begun']))
    left: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
    last = None
    for entry in before:
        if not left_out(contract, names(entry, 'nodes')):
            left[kind(entry)].clear()
            last = entry
        if entry.what['found']:
            left[kind(entry)].append(entry)
    found = [entry for entry in before if entry in left[kind(entry)]]
    of = last or before[-1]
    nodes, unjudged = names(of, 'nodes'), names(of, 'unjudged')
    return Screened(
        tuple(found),
        '; '.join(_told(entry, before[-1]) for entry in found),
        '' if last else left_out(contract, nodes),
        frozenset(nodes),
        without_judgement(unjudged),
        bool({*nodes} - {*unjudged}),
    )


def kind(entry: Entry) -> tuple[str, str]:
    """The environment and the fabric of a screening that the journal tells of."""
    return str(entry.what['environment']), str(entry.what['fabric'])


def names(entry: Entry, which: str) -> list[str]:
    """Names of nodes that an entry tells."""
    told = entry.what[which]
    return [str(name) for name in told] if isinstance(told, list) else []


def without_judgement(unjudged: Iterable[str]) -> str:
    """Which nodes nothing could judge, in words; empty for none."""
    if found := node_set(unjudged):
        return f'{found} could not be judged'
    return ''


def of_kind(entry: Entry) -> str:
    """The options of `assay screen` that ask for another screening of the same kind."""
    environment, fabric = kind(entry)
    return f'--environment {plain(environment, 60)} --fabric {plain(fabric, 60)}'


def left_out(contract: Contract, screened_nodes: Iterable[str]) -> str:
    """The nodes of the contract that a screening left out, in words, if they are too many."""
    asked, seen = contract.nodes, {*screened_nodes}
    if asked.names is not None:
        absent = sorted({*asked.names} - seen)
        return ', '.join(absent) if len(absent) > asked.may_be_missing else ''
    count = asked.count - len(seen)
    return many(count, 'node') if count > asked.may_be_missing else ''


def _told(entry: Entry, last: Entry) -> str:
    """What is open of an entry; and how it can be cleared, if the last screening cannot have."""
    found = plain(str(entry.what['found']), 300)
    if kind(entry) == kind(last):
        return found
    return f'{found} (only `assay screen {of_kind(entry)}` of all nodes can clear that)'
