"""The screening of the nodes that a contract may ask for before anything else is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay import AssayError
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.canonical import digest_of
from assay.acceptance.contract import Contract
from assay.acceptance.standing import SCREENED
from assay.screening import kept
from assay.screening.measured import Screening, read
from assay.screening.nodes import MOST_EARLIER
from assay.screening.verdict import judge
from assay.screening.where import choose

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def assert_screened(archive: Archive, site: _SiteConfig, contract: Contract) -> None:
    """Tell the journal of the newest screening, where a contract asks for one and no run began yet.

    :raises AssayError: if there is none since the acceptance began, it left out nodes, or it found
        something.
    """
    entries = journal.read(archive.journal).entries
    if not contract.screening_first or any(one.kind == 'started' for one in entries):
        return
    hold_screening(archive, contract, choose(site, contract.system).partition)


def hold_screening(archive: Archive, contract: Contract, partition: str) -> None:
    """As :func:`assert_screened`, of an acceptance in which no run has begun.

    :param partition: with its system.
    """
    entries = journal.read(archive.journal).entries
    how = f'run `assay screen --system {partition}`, and then this again'
    if not [*kept.folder_of(partition).glob('*.json')]:
        raise AssayError(f'the contract asks for a screening first: {how}')
    path = kept.find(kept.LAST, partition)
    now = read(path)
    if now.begun < entries[0].time:
        raise AssayError(f'the last screening is from before the acceptance began: {how}')
    if left := _left_out(now, contract):
        raise AssayError(f'the screening left out {left}: {how}')
    found = judge(now, kept.earlier(path, now, MOST_EARLIER))
    which = f'{path.name}, SHA-256 {digest_of(path)}'
    if found.exit_code:
        culprits = ', '.join(f'{one.kind} {" ".join(one.members)}' for one in found.findings)
        journal.append(archive.journal, 'note', text=f'screening: found {culprits}; {which}')
        raise AssayError(
            f'the screening found {culprits}: see `assay screen --system {partition} --from last`, '
            f'repair that, {how}'
        )
    journal.append(archive.journal, 'note', text=f'{SCREENED}; {which}')


def _left_out(now: Screening, contract: Contract) -> str:
    """The nodes of the contract that a screening left out, in words, if they are too many."""
    nodes = contract.nodes
    if nodes.names is not None:
        absent = sorted({*nodes.names} - {*now.nodes})
        return ', '.join(absent) if len(absent) > nodes.may_be_missing else ''
    absent_count = nodes.count - len(now.nodes)
    return f'{absent_count} nodes' if absent_count > nodes.may_be_missing else ''
