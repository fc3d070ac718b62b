"""A picture of a job: who sent how much to whom, and what each rank's time went into."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.text import plain
from assay.witness.profile import mean_shares, split
from assay.witness.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy import ndarray

SUFFIXES = ('.png', '.svg')

# More ranks than this are drawn in blocks: a picture has no more dots.
MOST_CELLS = 512

# Parts of a rank's time, bottom to top: Okabe and Ito's colours, told apart by all kinds of
# colour vision, and dark or light in turn.
COLOURS = {
    'computation': '#BBBBBB',
    'transfer': '#0072B2',
    'imbalance': '#F0E442',
    'late_sender': '#D55E00',
    'late_receiver': '#56B4E9',
}


def draw(report: Report, path: Path) -> None:
    """Write the matrix and the split of the ranks' time as PNG or SVG; equal reports, equal files.

    :raises AssayError: if the suffix is another, the report holds neither, or the file cannot be
        written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise AssayError(f'{path}: a picture ends in {" or ".join(SUFFIXES)}')
    if not (report.has_matrix or report.has_profile):
        why = 'has no profile and no matrix' if report.complete else 'is incomplete'
        raise AssayError(f'nothing to draw: the report {why}')

    import matplotlib
    from matplotlib.figure import Figure

    # Text stays text in an SVG, and its names do not change from one picture to the next.
    with matplotlib.rc_context({'svg.fonttype': 'none', 'svg.hashsalt': 'assay'}):
        figure = Figure(figsize=(13, 6), dpi=120, layout='constrained')
        left, right = figure.subplots(1, 2)
        program, *arguments = report.command or ['']
        command = plain(' '.join([Path(program).name, *arguments]))
        command = command if len(command) <= 80 else f'{command[:79]}…'
        title = f'{command} (ranks: {report.ranks}, hosts: {len(report.hosts)})'
        figure.suptitle(title, parse_math=False)
        _draw_matrix(report, figure, left)
        _draw_split(report, right)
        metadata = {'Date': None} if suffix == '.svg' else {'Software': None}
        try:
            figure.savefig(path, metadata=metadata)
        except OSError as error:
            raise AssayError(f'{path}: cannot be written: {error.strerror}') from None


def bytes_by_block(report: Report) -> tuple[ndarray, int]:
    """Bytes from each block of ranks (rows) to each (columns), and how many ranks a block has."""
    import numpy

    block = -(-report.ranks // MOST_CELLS)
    cells = numpy.zeros((-(-report.ranks // block),) * 2)
    for process in report.processes:
        for partner in process.partners:
            if partner.rank >= 0:
                # A logarithm has no place for empty messages: they are drawn as one byte.
                cells[process.rank // block, partner.rank // block] += max(partner.bytes, 1)
    return cells, block


def parts_by_block(report: Report) -> tuple[dict[str, ndarray], int]:
    """Percent of the wall time of each block of ranks, by part, and how many ranks a block has."""
    import numpy

    splits = [split(process) for process in report.processes]
    block = -(-len(splits) // MOST_CELLS)
    starts = numpy.arange(0, len(splits), block)
    # A job that does nothing between MPI_Init and MPI_Finalize may have taken no time.
    wall = numpy.maximum(numpy.add.reduceat([one.wall for one in splits], starts), 1e-9)
    seconds = {name: [getattr(one, name) for one in splits] for name in COLOURS}
    return {name: 100 * numpy.add.reduceat(seconds[name], starts) / wall for name in COLOURS}, block


def _draw_matrix(report: Report, figure: Figure, axes: Axes) -> None:
    import matplotlib
    import numpy
    from matplotlib.colors import ListedColormap, LogNorm
    from matplotlib.ticker import EngFormatter

    if not report.has_matrix:
        _say(axes, 'no section matrix in this report')
        return
    cells, block = bytes_by_block(report)
    if not cells.any():
        _say(axes, 'no messages between ranks')
        return
    sent = cells[cells > 0]
    highest = numpy.ceil(numpy.log10(sent.max()))
    lowest = min(numpy.floor(numpy.log10(sent.min())), highest - 1)
    decades = 10 ** numpy.arange(lowest, highest + 1)
    # Without its palest shades, which are hard to see on white.
    shades = matplotlib.colormaps['viridis_r'](numpy.linspace(0.1, 1, 256))
    end = len(cells) * block - 0.5
    image = axes.imshow(
        numpy.ma.masked_equal(cells, 0),
        norm=LogNorm(decades[0], decades[-1]),
        cmap=ListedColormap(shades),
        interpolation='nearest',
        extent=(-0.5, end, end, -0.5),
    )
    bar = figure.colorbar(image, ax=axes, ticks=decades, format=EngFormatter(unit='B'))
    of_what = f'bytes sent, {block} by {block} ranks a dot' if block > 1 else 'bytes sent'
    bar.set_label(f'{of_what} (logarithmic; white: none)')
    axes.set_title('who sent to whom')
    axes.set_xlabel('receiver (rank)')
    axes.set_ylabel('sender (rank)')
    _ticks_at_ranks(axes.xaxis, axes.yaxis)


def _draw_split(report: Report, axes: Axes) -> None:
    import numpy

    if not report.has_profile:
        _say(axes, 'no section profile in this report')
        return
    parts, block = parts_by_block(report)
    shares = mean_shares([split(process) for process in report.processes])
    blocks = len(parts['computation'])
    bottom = numpy.zeros(blocks)
    for name, part in parts.items():
        axes.bar(
            numpy.arange(blocks) * block + (block - 1) / 2,
            part,
            bottom=bottom,
            width=block * (0.8 if blocks <= 64 else 1.0),
            color=COLOURS[name],
            label=f'{name.replace("_", " ")} ({shares[name]:.1%})',
        )
        bottom += part
    axes.set_title('what the time of each rank went into')
    axes.set_xlabel('rank' if block == 1 else f'rank (mean of {block})')
    axes.set_ylabel('% of wall time')
    axes.set_ylim(0, 100)
    axes.set_xlim(-0.5, report.ranks - 0.5)
    axes.legend(loc='upper center', bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
    _ticks_at_ranks(axes.xaxis)


def _ticks_at_ranks(*scales: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    for scale in scales:
        scale.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))


def _say(axes: Axes, words: str) -> None:
    """Words in place of a panel."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, words, ha='center', va='center')
