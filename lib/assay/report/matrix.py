"""A run on one screen: a line for each headline of a check, a column for each MPI and fabric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from rich.text import Text

from assay.results.cases import Case, CaseFigure, is_no_evidence, parameters_of
from assay.results.failures import is_good
from assay.results.rows import is_number, number
from assay.text import many, plain

#: Lines that all of it has at most, with its headings, where little else is said.
MOST_LINES = 33

#: Marks of cells whose case did not pass, with their colours; the first counts most.
MARKS = {'!': 'failed', '?': 'disturbed'}
_COLOURS = {'!': 'red', '?': 'yellow', '': ''}

#: From here on a number is in thousands; below this it has an exponent; and characters for others.
_LARGE, _SMALL, _CELL = 1e5, 0.0005, 5
_FACTORS = ('', 'k', 'M', 'G', 'T')

#: Blanks between two environments.
_GAP = 3

#: Characters of a check and of a figure beyond which they are cut where the window is not wide: as
#: long as those of the suite. One name of somebody's own check may not take the room of all.
_CHECK, _FIGURE = 42, 26

#: An environment and a fabric.
_Place = tuple[str, str]


@dataclass
class _Cell:
    """The values and marks of the cases of one place: several cases if one was repeated."""

    values: list[float] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)

    @property
    def mark(self) -> str:
        return next((one for one in MARKS if one in self.marks), '')

    @property
    def number(self) -> str:
        return _short(median(self.values)) if self.values else ''


@dataclass
class _Line:
    """A figure of a check, with its unit, in each place where it was measured.

    :param check: with the parameters in which its cases differ.
    """

    check: str
    figure: str
    cells: dict[_Place, _Cell] = field(default_factory=dict)

    @property
    def is_marked(self) -> bool:
        return any(cell.mark for cell in self.cells.values())


@dataclass(frozen=True)
class _Widths:
    """Characters of the columns, with the blanks between them; the same in all blocks.

    :param mark: of a cell, what a mark takes: none where nothing is marked.
    """

    check: int
    figure: int
    cell: int
    mark: int

    @property
    def labels(self) -> int:
        return self.check + self.figure

    def columns(self, places: Sequence[_Place]) -> list[int]:
        """The widths of columns; the first of an environment leaves room for the name above."""
        counts = Counter(name for name, _ in places)
        found: list[int] = []
        for n, (name, _) in enumerate(places):
            width = self.cell
            if len(counts) > 1 and (n == 0 or name != places[n - 1][0]):
                others = (counts[name] - 1) * self.cell
                width = max(width + _GAP * (n > 0), len(name) + _GAP - others)
            found.append(width)
        return found


@dataclass(frozen=True)
class _Block:
    """Lines under the same headings."""

    places: Sequence[_Place]
    lines: Sequence[_Line]
    labels: int

    @property
    def environment(self) -> str:
        """The environment, if there is only one."""
        names = {name for name, _ in self.places}
        return names.pop() if len(names) == 1 else ''

    @property
    def corner(self) -> str:
        """It where it has room beside the fabrics; otherwise it has a line above, as several do."""
        return self.environment if len(self.environment) < self.labels else ''

    @property
    def fabrics(self) -> list[tuple[str, ...]]:
        """Headings of the columns, in as many lines as ``ucx-tcp`` takes: two."""
        parts = [_folded(fabric) for _, fabric in self.places]
        deepest = max(map(len, parts))
        return [*zip(*([''] * (deepest - len(one)) + one for one in parts), strict=True)]

    @property
    def height(self) -> int:
        return (not self.corner) + len(self.fabrics) + len(self.lines)


def matrix(cases: Iterable[Case], width: int, most: int = MOST_LINES) -> list[Text]:
    """The lines of the matrix; what failed or was disturbed is among them, whatever is left out.

    :param cases: those that count, without builds.
    :param most: lines that there may be; more only where even one check needs them.
    """
    lines = _lines([case for case in cases if case.result != 'skip'])
    if not lines:
        return []
    first = sorted(range(len(lines)), key=lambda one: not lines[one].is_marked)
    for count in range(min(len(lines), max(most, 1)), 0, -1):
        shown = [lines[one] for one in sorted(first[:count])]
        widths = _widths(shown, width)
        blocks = _blocks(shown, widths, width)
        others = (count < len(lines)) + widths.mark
        if sum(block.height for block in blocks) + others <= most:
            break
    found = [line for block in blocks for line in _drawn(block, widths)]
    if count < len(lines):
        found.append(Text(f'... and {many(len(lines) - count, "line")} more'))
    if widths.mark:
        used = {cell.mark for line in shown for cell in line.cells.values()}
        words = (f'{mark} {word}' for mark, word in MARKS.items() if mark in used)
        found.append(Text(', '.join(words)))
    return found


def labels(cases: Sequence[Case]) -> list[str]:
    """The label of each case among these, without its environment and fabric.

    That is its check, and those of its parameters in which the check's cases differ.
    """
    named = [_parameters(case) for case in cases]
    values: dict[tuple[str, str], set[str]] = {}
    for case, parameters in zip(cases, named, strict=True):
        for name, value in parameters.items():
            values.setdefault((case.check, name), set()).add(value)

    def label(case: Case, parameters: dict[str, str]) -> str:
        differ = (one for one in parameters.items() if len(values[case.check, one[0]]) > 1)
        return plain(' '.join([case.check, *map(_told, differ)]))

    return [label(*one) for one in zip(cases, named, strict=True)]


def _parameters(case: Case) -> dict[str, str]:
    found = parameters_of(case.display_name)
    return {'partition': case.partition} | {
        name: value for name, value in found.items() if name != 'fabric'
    }


def _told(parameter: tuple[str, str]) -> str:
    name, value = parameter
    return value if name in ('partition', 'scale', 'layout') else f'{name}={value}'


def _lines(cases: Sequence[Case]) -> list[_Line]:
    """The lines of cases, in the order in which these ran.

    A case without figures is in all lines of its check.
    """
    of_cases = [_headlines(case) for case in cases]
    of_class: dict[str, dict[str, str]] = {}
    for case, figures in zip(cases, of_cases, strict=True):
        of_class.setdefault(case.check, {}).update({one.name: one.unit for one in figures})
    found: dict[tuple[str, str], _Line] = {}
    for case, label, figures in zip(cases, labels(cases), of_cases, strict=True):
        mark = '' if is_good(case) else '?' if is_no_evidence(case) else '!'
        place = plain(case.environment), plain(case.fabric or '-')
        values = {one.name: one.value for one in figures}
        units = of_class[case.check]
        for figure in values or units or ['']:
            unit = units.get(figure, '')
            name = plain(figure if unit in ('', '1') else f'{figure} {unit}')
            line = found.setdefault((label, figure), _Line(label, name))
            cell = line.cells.setdefault(place, _Cell())
            cell.marks.add(mark)
            if is_number(value := values.get(figure)):
                cell.values.append(value)
    return list(found.values())


def _headlines(case: Case) -> list[CaseFigure]:
    figures = [one for one in case.figures if one.value is not None]
    return [one for one in figures if one.is_headline] or figures[:1]


def _widths(lines: Sequence[_Line], width: int) -> _Widths:
    cells = [cell for line in lines for cell in line.cells.values()]
    heads = [len(one) for line in lines for _, fabric in line.cells for one in _folded(fabric)]
    mark = int(any(cell.mark for cell in cells))
    return _Widths(
        check=min(max(len(line.check) for line in lines), max(_CHECK, width // 3)) + 2,
        figure=min(max(len(line.figure) for line in lines), max(_FIGURE, width // 4)) + 1,
        cell=max(*heads, *(len(cell.number) + mark for cell in cells)) + 1,
        mark=mark,
    )


def _folded(fabric: str) -> list[str]:
    """``ucx-`` and ``tcp``."""
    return re.findall(r'[^-]+-?', fabric) or ['-']


def _blocks(lines: Sequence[_Line], widths: _Widths, width: int) -> list[_Block]:
    """First the checks of one fabric, which have few columns, then the others."""
    fabrics: dict[str, set[str]] = {}
    for line in lines:
        fabrics.setdefault(line.check, set()).update(fabric for _, fabric in line.cells)
    of_one = [line for line in lines if len(fabrics[line.check]) == 1]
    of_several = [line for line in lines if len(fabrics[line.check]) > 1]
    return [*_divided(of_one, widths, width), *_divided(of_several, widths, width)]


def _divided(lines: Sequence[_Line], widths: _Widths, width: int) -> Iterator[_Block]:
    """Blocks that fit into the window, each environment in one block if it can be."""
    places: dict[str, dict[_Place, None]] = {}
    for place in (place for line in lines for place in line.cells):
        places.setdefault(place[0], {})[place] = None
    taken: list[_Place] = []

    def is_room_for(more: Iterable[_Place]) -> bool:
        return widths.labels + sum(widths.columns([*taken, *more])) <= width

    def block() -> _Block:
        own = {*taken}
        of_these = [line for line in lines if own & line.cells.keys()]
        return _Block(tuple(taken), of_these, widths.labels)

    for together in places.values():
        for pieces in [together] if not taken or is_room_for(together) else [{}, together]:
            if not pieces:
                yield block()
                taken = []
            for place in pieces:
                if taken and not is_room_for([place]):
                    yield block()
                    taken = []
                taken.append(place)
    if taken:
        yield block()


def _drawn(block: _Block, widths: _Widths) -> Iterator[Text]:
    columns = widths.columns(block.places)
    if block.environment and not block.corner:
        yield Text(block.environment, 'bold')
    elif not block.corner:
        names = groupby(zip(block.places, columns, strict=True), key=lambda one: one[0][0])
        heading = ''.join(name.rjust(sum(width for _, width in some)) for name, some in names)
        yield Text(f'{"":{widths.labels}}{heading}', 'bold')
    for left, words in enumerate(block.fabrics, 1 - len(block.fabrics)):
        corner = '' if left else block.corner
        yield Text(f'{corner:{widths.labels}}{"".join(map(str.rjust, words, columns))}', 'bold')
    for line in block.lines:
        check, figure = _cut(line.check, widths.check - 2), _cut(line.figure, widths.figure - 1)
        text = Text(f'{check:{widths.check}}{figure:{widths.figure}}')
        for place, width in zip(block.places, columns, strict=True):
            cell = line.cells.get(place)
            mark, shown = (cell.mark, cell.number) if cell else ('', '-')
            text.append(f'{shown}{mark or " " * widths.mark}'.rjust(width), _COLOURS[mark])
        text.rstrip()
        yield text


def _cut(text: str, most: int) -> str:
    """A text of at most so many characters: its end tells variants of a check and units apart."""
    if len(text) <= most:
        return text
    end = most // 3
    return f'{text[: most - end - 3]}...{text[-end:]}'


def _short(value: float) -> str:
    """A number of three digits in at most five characters, where that can be."""
    if 0 < abs(value) < _SMALL:
        return f'{value:.0e}'
    thousands = 0
    while abs(value) >= (1000 if thousands else _LARGE) and thousands < len(_FACTORS) - 1:
        thousands += 1
        value /= 1000
    exact = number(value, 3)
    shorter = (f'{value:.{decimals}f}' for decimals in (3, 2))
    text = next((one for one in (exact, *shorter) if len(one) <= _CELL), exact)
    return f'{text}{_FACTORS[thousands]}'
