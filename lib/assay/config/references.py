"""The references of a check's figures: the files of references, laid over each other."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import reframe.core.runtime as rt
from reframe.core.pipeline import RegressionTest, RegressionTestDict

from assay import paths
from assay.config.fabrics import load_catalogue
from assay.config.reference_files import (
    ANY,
    GENERIC,
    LEARNED,
    Reference,
    ReferencesError,
    faults,
    read_reference_file,
    unused_parts,
)
from assay.config.scales import PARTS, SCALES, scales_in
from assay.programs.figure import Figure
from assay.text import unknown_name
from assay.witness.profile import STARTUP


class Layer(NamedTuple):
    """The entry of one file for a check: of references, or the check's own if it is not ours."""

    path: Path
    entry: RegressionTestDict


def file_of(name: str) -> Path:
    """The file of a system, or of an architecture as archspec names it."""
    return Path(rt.runtime().get_option('general/0/reference_prefix'), f'{name}.yaml')


def layers(check: RegressionTest) -> list[Layer]:
    """The entries of the files for a check, in the order in which they count.

    They are of its system, by hand and learned; of the partition's processor; and of any machine.
    The own references of a check from outside the checkout come before those for any machine.

    :param check: after its setup.
    :raises ReferencesError: if a file cannot be read, or what it says of the check is not right.
    """
    own = (check.current_system.name, check.current_partition.processor.arch)
    names = [name for name in dict.fromkeys(own) if name and name != GENERIC]
    files = [file_of(name) for name in [*names, GENERIC]]
    files[1:1] = [files[0].parent / LEARNED / files[0].name] if own[0] in names else []
    found: list[Layer] = []
    for path in files:
        if path.stem == GENERIC:
            found += _of_class(check)
        name, entries = type(check).__name__, read_reference_file(path)
        for key in (name, ANY):
            if key not in entries:
                continue
            wrong = list(faults(entries[key], path.stem == GENERIC))
            wrong = wrong or list(_unused_by(check, entries[key], path.stem == own[0]))
            if wrong:
                raise ReferencesError(f'{path}: {"; ".join(key + fault for fault in wrong)}')
            found.append(Layer(path, RegressionTestDict(entries[key])))
    return found


def _of_class(check: RegressionTest) -> Iterator[Layer]:
    """The entry that ReFrame's variable ``reference`` has in a check that is not one of ours.

    That of ours is not looked at: an option could set it (-S).

    :raises ReferencesError: as :func:`layers`.
    """
    # Of an application of the site its entry says them.
    entry = getattr(check, 'own_references', None)
    file, own = entry or (_file_outside(check), check.reference)
    if file is None or not own:
        return
    protocol = None
    if entry:
        rules = {'$index': ['$partition'], '.*': own}
    elif getattr(own, 'index', None):  # maybe of what the layout sets: merge() looks it up
        rules, protocol = {'$index': [*own.index], **own.data}, own.protocol
    else:
        rules = {'$index': ['$partition'], '.*': own.scope(check.current_partition.fullname)}
        if not rules['.*']:
            return
    rules = _with_lists(rules)
    if wrong := [one.removeprefix('..*') for one in faults(rules, is_generic=False)]:
        name = type(check).__name__
        raise ReferencesError(f'{file}: {"; ".join(f"{name}.reference{one}" for one in wrong)}')
    yield Layer(file, RegressionTestDict(rules, protocol=protocol))


def _with_lists(level: Any) -> Any:
    """A level of references as it stands in a file, where each is a list and no tuple."""
    if isinstance(level, Mapping):
        return {key: _with_lists(one) for key, one in level.items()}
    return [*level] if isinstance(level, tuple) else level


def set_too_late(check: RegressionTest, layers: Sequence[Layer]) -> Iterator[str]:
    """A sentence if a check of somebody else set its ``reference`` after that had been read.

    :param layers: of :func:`layers`, after the check's setup.
    """
    try:
        if all(one in layers for one in _of_class(check)):
            return
    except ReferencesError:  # what was set late is wrong, too
        pass
    yield (
        f'{type(check).__name__} set its reference after the setup, which reads it: set it in the '
        "class, or in a hook of run_after('init')"
    )


def _file_outside(check: RegressionTest) -> Path | None:
    """The file of a check that is not one of ours; None of one that is."""
    file = Path(inspect.getfile(type(check))).resolve()
    return None if file.is_relative_to(paths.CHECKS) else file


def merge(
    check: RegressionTest, layers: Iterable[Layer], figures: Mapping[str, Figure]
) -> dict[str, Reference]:
    """The reference of each figure: that of the first layer that has one for this variant.

    :param figures: of the job; where its nodes have several kinds of cores, those that compare
        cores are held to none for any machine.
    """
    has_kinds = len(check.current_partition.extras.get('core_kinds', ())) > 1
    uneven = {name for name, one in figures.items() if has_kinds and one.among_cores}
    held: dict[str, Reference] = {}
    for path, entry in layers:
        try:
            found = entry[check]
        except KeyError:  # nothing for this variant
            continue
        for name, given in found.items():
            if name not in uneven or path.stem != GENERIC:
                held.setdefault(name, Reference.read(given, path))
    return held


def _unused_by(check: RegressionTest, entry: dict[str, Any], is_own: bool) -> Iterator[str]:
    """Parts of an entry that match nothing of the check on this system, as in :func:`faults`."""
    processor = check.current_partition.processor
    for key in entry['$index']:
        kind, _, attribute = key.partition('.')
        if kind == '$processor' and not hasattr(processor, attribute):
            yield f'.$index: a processor has no {attribute!r}'
    # Of this system only some fabrics and scales are parameters, of this run (-P) maybe fewer.
    here = scales_in({name for one in check.current_system.partitions for name in one.features})
    values = {'fabric': {*load_catalogue().fabrics}, 'scale': {*SCALES, *PARTS, *here}}
    for cls in type(check).__mro__:
        for name, one in getattr(getattr(cls, 'param_space', None), 'params', {}).items():
            values.setdefault(name, set()).update(one.values)
    if is_own:
        values['$partition'] = {one.fullname for one in check.current_system.partitions}
    yield from unused_parts(entry, check, values)


def reference_loopholes(
    check: RegressionTest, held: Mapping[str, Reference], figures: Mapping[str, Figure]
) -> Iterator[str]:
    """Sentences: what would let a wrong figure of a job pass.

    :param held: the references of the job, by the names of its figures.
    """
    where = f'{type(check).__name__} over {check.fabric}'
    outside = _file_outside(check)
    own = f'its class ({outside})' if outside else f'{file_of(check.current_system.name)}'
    has_limit = any(name.endswith('_limit') for name in figures)
    for name, reference in held.items():
        if name in figures:
            if fault := reference.fault(name, figures[name]):
                yield f'{reference.path}: {where}: {fault}'
        # What has no limit, such as a network, cannot be a fraction of it.
        elif name not in {*check.may_lack, *STARTUP} and (has_limit or not name.endswith('_limit')):
            fault = unknown_name(name, 'figure of this job', figures)
            yield f'{reference.path}: {where}: {name}: {fault}'
    for name, figure in figures.items():
        if figure.must_be_held and name not in held:
            yield f'{where}: {name} is held to nothing: give it a reference in {own}'
    if not figures:
        yield f'{where}: nothing was measured'
        return
    # How long a job takes to start says nothing of what it measured.
    is_held = any(
        name in figures and name not in STARTUP and not one.is_release for name, one in held.items()
    )
    # References for any machine are those of our sources: others have none to start with.
    if not is_held and getattr(check, 'implementation', 'assay') == 'assay':
        yield f'{where}: no figure is held to anything: give one a reference in {own}'
