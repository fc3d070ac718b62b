"""What cases were measured with, as lines of text: cases that share it stand together."""

from __future__ import annotations

from collections.abc import Mapping

from assay.results.cases import Facts
from assay.text import plain


def show(facts: Mapping[str, Facts], where: Mapping[str, str]) -> None:
    """The cases that share their facts, each with where it ran, and those."""
    cases: dict[Facts, list[str]] = {}
    for case, lines in facts.items():
        cases.setdefault(lines, []).append(f'{case}  {where.get(case, "")}'.rstrip())
    for lines, names in cases.items():
        print(*names, sep='\n')
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f'    {name:{width}} {plain(value or "-")}')
