"""What `assay init` found and confirmed, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from assay.report.console import console
from assay.text import plain

if TYPE_CHECKING:
    from assay.discovery.draft import Draft, LeftOut
    from assay.discovery.init import Way


def show(found: Draft, left_out: LeftOut, noted: dict[Way, str]) -> None:
    """Print what each partition has, and sentences on what it has not.

    :param left_out: what no job confirmed, and why.
    :param noted: what was confirmed and missed its references, or was disturbed.
    """
    table = Table('partition', 'MPI', 'starts by', 'confirmed', box=None, pad_edge=False)
    for one in found.without(left_out).partitions:
        for use in one.uses:
            way = f'srun, {use.pmi}' if use.pmi else one.launcher
            row = (one.name, use.mpi.name, way, ' '.join(use.fabrics))
            table.add_row(*(Text(plain(cell)) for cell in row))
    console().print(table)
    sentences = [f'not there: {one}' for one in found.missing]
    sentences += [
        f'not confirmed: {partition} {environment} {fabric}: {why}'
        for partition, environments in left_out.items()
        for environment, fabrics in environments.items()
        for fabric, why in fabrics.items()
    ]
    sentences += [f'confirmed, but: {" ".join(way)}: {why}' for way, why in noted.items()]
    for sentence in sentences:
        console().print(Text(plain(sentence)))
