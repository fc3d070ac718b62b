"""Compute the references of a system from the figures of its runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay import AssayError, paths
from assay.config.learned import Learned, LearnedFile, parse_learned, read_text
from assay.config.lint import known_classes
from assay.config.reference_files import (
    GENERIC,
    LEARNED,
    Reference,
    ReferencesError,
    faults,
    read_reference_file,
    references_for,
)
from assay.config.settings import system_file
from assay.results.cases import Case, Run, parameters_of
from assay.results.rows import BAD
from assay.text import expand_nodes, fold_nodes, many, plain, unknown_name
from assay.witness.disturbance import DISTURBANCES
from assay.witness.profile import STARTUP

if TYPE_CHECKING:
    from assay.results.figure_series import FigureKey, Measured
    from assay.results.history import StoredRun
    from assay.results.statistics.bounds import Bounds

#: A bound that lets a figure become half as good holds it to no more than those for any machine do
#: (docs/references.md): as fractions of the value, downwards and upwards.
UNSTEADY_LOSS, UNSTEADY_GAIN = 0.5, 1.0
#: Facts that have one value in a baseline, by the words beside a reference.
FACTS = {'compiler': 'compiler', 'mpi': 'MPI', 'cpu': 'processors'}

_DIGITS, _DECIMALS = 4, 3
_DAY = '%Y-%m-%d'


#: A figure that no reference can be had for, and why.
Refused = tuple['FigureKey', str]


def values_of(system: str, partition: str, environment: str, case: str) -> dict[str, str]:
    """The values of a case for the keys of an index, in the order of a new index."""
    place = {'$partition': f'{system}:{partition}', '$environ': environment}
    # Those of a fixture have a dot.
    own = {name: value for name, value in parameters_of(case).items() if '.' not in name}
    return place | own


def of_the_past(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs except for those of the future, whose times are unknown.

    :raises AssayError: if none is left.
    """
    found = [run for run in runs if not run.is_of_the_future]
    if not found:
        raise AssayError('all of the runs are of the future: nobody knows when they were.')
    return found


def system_of(runs: Sequence[StoredRun]) -> str:
    """The system that runs are of, which can have references of its own.

    :raises AssayError: if they are of several, or of one that cannot.
    """
    systems = sorted({run.summary.system for run in runs})
    if len(systems) > 1:
        raise AssayError(
            f'the runs are of several systems, {", ".join(systems)}: choose one with --system.'
        )
    (system,) = systems
    if system == GENERIC:
        raise AssayError(
            f'the runs are of the system {GENERIC}, which is any machine: its references are for '
            'all of them. Give this machine a name, by a file of its own in config/systems '
            '(docs/extending.md), and measure it under that.'
        )
    system_file(system)
    return system


def propose(
    found: Mapping[FigureKey, Measured], known: LearnedFile, worst: float, accept: bool
) -> tuple[list[Learned], list[Refused]]:
    """The references that runs of one system give, and the figures that get none.

    A figure is held on the side that it gets worse on, and to what holds on any machine as well.

    :param found: those that are to have a reference.
    :param known: what was learned before. The error rate is that of all that is held then.
    :param worst: a bound that is further from the value than this share of it is flagged.
    :param accept: a figure gets a reference even if runs failed by it.
    """
    from assay.results.figure_series import NEWEST, learn_past
    from assay.results.statistics.bounds import FEWEST, bounds

    places: dict[tuple[object, ...], set[str]] = {}
    for figure in found:
        places.setdefault(_place(figure), set()).add(figure.unit)
    classes = known_classes(paths.CHECKS)
    refused: list[Refused] = []
    candidates: list[Measured] = []
    for figure, one in found.items():
        if figure.figure in (*DISTURBANCES, *STARTUP):
            continue
        one = one.newest(NEWEST)
        if one.check not in classes:
            refused.append((figure, unknown_name(one.check, 'check class', classes)))
        elif reason := _unfit(one, places[_place(figure)], FEWEST, accept):
            refused.append((figure, reason))
        else:
            candidates.append(one)
    own = {known.place(one.check, _values(one.figure), one.figure.figure) for one in candidates}
    held = len(candidates) + len(known.sources.keys() - own)
    kinds = learn_past(candidates).kinds
    learned: list[Learned] = []
    by_kind: dict[tuple[str, str], list[Measured]] = {}
    for one in candidates:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, some in by_kind.items():
        directions = [cast(Any, one.better) for one in some]
        histories = [one.series for one in some if one.series is not None]
        got = bounds(histories, directions, kinds[kind], held)
        for one, found_bounds in zip(some, got, strict=True):
            result = _learned(one, found_bounds, worst)
            if isinstance(result, str):
                refused.append((one.figure, result))
            else:
                learned.append(result)
    return sorted(learned, key=lambda one: one.name), sorted(refused)


def _values(figure: FigureKey) -> dict[str, str]:
    return values_of(figure.system, figure.partition, figure.environment, figure.case)


def _place(figure: FigureKey) -> tuple[object, ...]:
    return figure.partition, figure.environment, figure.case, figure.figure


def _unfit(one: Measured, units: set[str], fewest: int, accept: bool) -> str | None:
    """Why a figure cannot have a reference, whatever its values are."""
    if len(units) > 1:
        return f'it was measured in {" and in ".join(sorted(units))}: choose runs of one unit'
    if one.better is None:
        return 'nobody stored whether it gets better upwards or downwards: measure it anew'
    if not accept and one.unusable:
        return (
            f'it was no finite number, or negative, in {many(one.unusable, "value")}: find out '
            'why, or choose other runs; --accept takes the others'
        )
    if not accept and (reason := _failed(one)):
        return reason
    if one.series is None or one.series.size < fewest:
        sessions = one.series.size if one.series else 0
        why = f'{sessions} sessions are too few: {fewest - sessions} more are needed'
        left = {'disturbed by others': one.disturbed, 'no finite number': one.unusable}
        told = [f'{count} left out as {what}' for what, count in left.items() if count]
        return '; '.join([why, *told])
    for name, told_by in FACTS.items():
        words = {source[name] for source in _sources(one) if name in source}
        if len(words) > 1:
            return (
                f'it was measured with several {told_by}: {", ".join(sorted(words))}: choose runs '
                'of one'
            )
    return None


def _failed(one: Measured) -> str | None:
    """Why what its runs said of a figure makes it no measure for others; None if all was well."""
    verdicts = one.verdicts.cast(str)
    is_bad = verdicts.is_in([*BAD]).fill_null(False)
    if not is_bad.any():
        return None
    words = sorted(verdicts.filter(is_bad).unique())
    what = 'missed its reference' if words == ['fail'] else f'was judged {", ".join(words)}'
    return (
        f'it {what} in {one.runs.filter(is_bad).n_unique()} of '
        f'{many(one.runs.n_unique(), "run")}: find out why, or choose other runs; --accept takes it'
    )


def _learned(one: Measured, found: Bounds, worst: float) -> Learned | str:
    """A reference, or why there is none."""
    if found.refused:
        return found.refused
    exact = one.better == 'exact'
    value = found.value if exact else float(f'{found.value:.{_DIGITS}g}')
    sides = {'lower': (None, found.upper), 'higher': (found.lower, None)}
    lower, upper = sides.get(str(one.better), (found.lower, found.upper))
    # What holds on any machine goes on holding: a fabric that is too fast was another one.
    below = _below(one)
    if below and below.unit == one.figure.unit:
        least, most = (
            None if side is None else below.value * (1 + side)
            for side in (below.lower, below.upper)
        )
        if (least is not None and value < least) or (most is not None and value > most):
            return f'its value, {value:.4g}, is beyond the bounds in {below.path.name}'
        lower = max((side for side in (lower, least) if side is not None), default=None)
        upper = min((side for side in (upper, most) if side is not None), default=None)
    fractions = _fraction(lower, value, -1), _fraction(upper, value, 1)
    # How far a figure may get worse: of one that must be exact, not at all.
    worse = fractions[1] if one.better == 'lower' else fractions[0]
    if worse is None or not -UNSTEADY_LOSS <= worse <= UNSTEADY_GAIN:
        return (
            f'it is not steady enough: with a spread of {found.spread:.0%} between runs, one half '
            'as good would be within its bounds'
        )
    told = _told(one, found)
    if abs(worse) > worst:
        told['wide'] = f'{abs(worse):.0%}'
    number = int(value) if exact and value.is_integer() else value
    given = (number, *fractions, one.figure.unit)
    return Learned(
        name=str(one.figure),
        check=one.check,
        values=_values(one.figure),
        figure=one.figure.figure,
        better=str(one.better),
        given=given,
        source=told,
    )


def _fraction(bound: float | None, value: float, side: int) -> float | None:
    """A bound as a fraction of a value, rounded away from it: ``side`` is -1 below, 1 above.

    None where that is no bound: no figure is below 0.
    """
    if bound is None or (side < 0 and bound <= 0 < value):
        return None
    if bound == value:
        return 0
    for decimals in range(_DECIMALS, 16):
        scale = 10.0**decimals
        steps = int(abs(bound / value - 1) * scale)
        # With the product that ReFrame takes.
        while side * value * (1 + side * steps / scale) < side * bound:
            steps += 1
        if side > 0 or steps < scale:
            break
    return side * steps / scale


def _below(one: Measured) -> Reference | None:
    """The reference that a figure has without the file of its system."""
    values, check, name = _values(one.figure), one.check, one.figure.figure
    (*_, source) = _sources(one)
    for stem in (*([source['cpu']] if 'cpu' in source else []), GENERIC):
        path = paths.REFERENCES / f'{stem}.yaml'
        entries = read_reference_file(path)
        if check not in entries:
            continue
        for fault in faults(entries[check], stem == GENERIC):
            raise ReferencesError(f'{path}: {check}{fault}')
        if given := references_for(entries[check], values).get(name):
            return Reference.read(given, path)
    return None


def _told(one: Measured, found: Bounds) -> dict[str, str]:
    """The note beside a reference on what it was learned from."""
    days = sorted({datetime.fromtimestamp(time).strftime(_DAY) for time in one.times})
    (*_, source) = _sources(one)
    told = {
        'n': str(found.sessions),
        'days': '..'.join(dict.fromkeys((days[0], days[-1]))),
        'spread': f'{found.spread:.1%}',
        **source,
        'nodes': _nodes(tuple(one.nodes.drop_nulls().unique().cast(str).sort())),
    }
    return {name: word for name, word in told.items() if word}


# Most figures have the nodes and the programs of others.
@lru_cache
def _nodes(named: tuple[str, ...]) -> str:
    """All nodes of some names, each such as ``n[1-4]``."""
    return fold_nodes(sorted({node for some in named for node in expand_nodes(some)}))


def _sources(one: Measured) -> list[dict[str, str]]:
    """The sources that a figure was measured with, each once, the newest last."""
    words = one.provenance.drop_nulls().reverse().unique(maintain_order=True).reverse()
    return [_source(text) for text in words] or [{}]


@lru_cache
def _source(provenance: str) -> dict[str, str]:
    return source_of(json.loads(provenance))


def source_of(known: Mapping[str, str]) -> dict[str, str]:
    """The part of a case's provenance that changes figures, by the keys of a reference's note."""
    found = {
        'compiler': known.get('compiler', ''),
        # The program may be of others, who did not say: then what the library said of itself.
        'mpi': known.get('mpi') or known.get('ran_mpi', '').partition(' (')[0],
        'build': known.get('hash', '')[:12],
        'cpu': known.get('target', ''),
    }
    return {name: plain(word) for name, word in found.items() if word}


def changes_since_learned(run: Run, references: Path) -> list[str]:
    """The changes since the references of a run were learned, a sentence for each.

    :param references: the folder of the files.
    """
    files: dict[str, LearnedFile] = {}
    causes: Counter[tuple[str, str, str]] = Counter()
    for case in run.counted:
        system = case.system
        if system not in files:
            files[system] = _known(references / LEARNED / f'{system}.yaml')
        now = source_of(dict(case.facts))
        for then in _sources_of(case, files[system]):
            changed = [
                (what, then[name], now[name])
                for name, what in FACTS.items()
                if name in then and name in now and then[name] != now[name]
            ]
            # Another compiler or MPI is another build by itself.
            if not changed and 'build' in then and then['build'] != now.get('build', ''):
                changed = [('build', then['build'], now.get('build', 'another'))]
            causes.update(changed)
    return [
        f'the references of {many(count, "figure")} were measured with the {what} '
        f'{then}, this run used {now}: `assay baseline` renews them'
        for (what, then, now), count in causes.items()
    ]


def _known(path: Path) -> LearnedFile:
    try:
        return parse_learned(read_text(path), path)
    except ReferencesError:  # the cases fail by themselves then
        return LearnedFile()


def _sources_of(case: Case, known: LearnedFile) -> Iterator[Mapping[str, str]]:
    """The sources that the references of a case's figures were learned from."""
    values = values_of(case.system, case.partition, case.environment, case.display_name)
    for figure in case.figures:
        source = known.sources.get(known.place(case.check, values, figure.name))
        if source is not None:
            yield source
