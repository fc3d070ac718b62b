"""The figures of a run, computed again from the outputs that were kept: nothing kept is executed.

A check of this checkout reads them, as it did when the job had ended. What it has to know of the
system it gets from data that were kept (:mod:`assay.acceptance.facts`).
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from assay import AssayError
from assay.acceptance.archive import CASES, case_folder
from assay.acceptance.facts import Facts, PartitionFacts
from assay.config.scales import PARTS, number_in
from assay.job.ending import EndedJob
from assay.job.launch import reports_in
from assay.programs.figure import Figure
from assay.results.cases import Case, CaseFigure, Run
from assay.results.rows import is_beyond, is_number
from assay.text import many, plain
from assay.witness.disturbance import interference
from assay.witness.report import Report as Witnessed

#: By which fraction a figure may differ: the last digit of what is written, on another machine.
SAME = 1e-12


class Recomputed(NamedTuple):
    """The result of computing the figures of a run again.

    :param figures: how many were computed again, and are as the report says.
    :param without: cases that ended before they had figures: there is nothing to be computed.
    :param faults: sentences: what is otherwise, or could not be computed.
    """

    figures: int
    without: int
    faults: tuple[str, ...]


def compute_again(runs: Iterable[tuple[Path, Run]], facts: Facts) -> list[Recomputed]:
    """Hold the figures of the reports of runs against what their outputs say.

    :param runs: the folder of each in the archive, and its report.
    :param facts: of the system that all of them ran on.
    """
    with _runtime(facts) as scratch:
        return [_of_run(folder, report, facts, scratch) for folder, report in runs]


def _of_run(folder: Path, run: Run, facts: Facts, scratch: Path) -> Recomputed:
    count = without = 0
    faults: list[str] = []
    for case in run.cases:
        if case.is_fixture:
            continue
        if not case.figures:
            without += 1
            if case.result == 'pass':
                faults.append(f'{case.title} passed, and has no figures')
            continue
        try:
            figures = _figures(case, folder / CASES / case_folder(case), facts, scratch)
            wrong = [*_differences(case.figures, figures), *_misjudged(case)]
        # What was written by others can make a check raise anything.
        except Exception as error:
            told = plain(str(error) or type(error).__name__, 300)
            faults.append(f'{case.title} could not be computed again: {told}')
            continue
        faults += [f'{case.title}: {one}' for one in wrong]
        count += len(figures)
    return Recomputed(count, without, tuple(faults))


@contextmanager
def _runtime(facts: Facts) -> Iterator[Path]:
    """ReFrame on a system that is only known by data; gives a folder for it.

    :raises AssayError: if ReFrame does not take the data.
    """
    import reframe.core.runtime as rt
    from reframe.core.exceptions import ReframeError

    from assay.checks.check import all_checks

    all_checks()  # before ReFrame has a system
    with tempfile.TemporaryDirectory(prefix='assay-verify-') as scratch:
        path = Path(scratch, 'system.json')  # as YAML it would be a template
        path.write_text(json.dumps(_configuration(facts)))
        options = {
            'general/reference_prefix': scratch,  # of a folder without any
            'systems/prefix': scratch,
        }
        try:
            runtime = rt.temp_runtime(str(path), facts.system, options)
        except ReframeError as error:
            raise AssayError(f'the facts of the system are not right: {error}') from None
        with runtime:
            yield Path(scratch)


def _configuration(facts: Facts) -> dict[str, Any]:
    return {
        'systems': [
            {
                'name': facts.system,
                'hostnames': ['.*'],
                'modules_system': 'nomod',
                'partitions': [_partition(one) for one in facts.partitions],
            }
        ],
        'environments': [
            {'name': one.name, 'features': [*one.features], 'extras': one.extras}
            for one in facts.environments
        ],
    }


def _partition(partition: PartitionFacts) -> dict[str, Any]:
    """As one of other nodes than this machine, so that nothing is asked of this machine."""
    processor, extras = dict(partition.processor), dict(partition.extras)
    if partition.cores:
        processor |= {'num_cpus': partition.cores, 'num_cpus_per_core': 1}
        processor['topology'] = {**(processor.get('topology') or {}), 'cores': []}
    if partition.memory_gib is not None:
        extras['memory_gib'] = partition.memory_gib
    return {
        'name': partition.name,
        'scheduler': 'slurm',
        'launcher': partition.launcher,
        'environs': [*partition.environments],
        'features': [*partition.features],
        'extras': extras,
        'processor': processor,
    }


def _figures(case: Case, kept: Path, facts: Facts, scratch: Path) -> Mapping[str, Figure]:
    """The figures of a case, computed from its outputs.

    :param kept: its folder in the archive, which stays as it is.
    :raises Exception: whatever a check raises of outputs that are not right.
    """
    import reframe.core.runtime as rt

    from assay.checks.check import all_checks

    if case.system != facts.system:
        raise AssayError(f'the report is of {case.system}, and the facts of {facts.system}')
    own = all_checks().get(case.check)
    if own is None:
        raise AssayError(f'this checkout has no check {case.check}')
    cls = _at_its_scale(own, case)
    partitions = {one.name: one for one in rt.runtime().system.partitions}
    partition = partitions[case.partition]
    environment = {one.name: one for one in partition.environs}[case.environment]
    check: Any = cls(variant_num=_variant(cls, case))
    check._resolve_fixtures = lambda: None  # nothing is built
    if hasattr(check, 'asked_nodes'):
        check.asked_nodes = len(case.job.nodes)  # which no scheduler is asked for
    check.setup(partition, environment)
    asked = (check.num_tasks, check.num_tasks_per_node)
    if asked != (case.job.ranks, case.job.ranks_per_node):
        raise AssayError(
            f'its job had {case.job.ranks} ranks, {case.job.ranks_per_node} on a node, and '
            f'its layout asks for {asked[0]}, {asked[1]} on a node'
        )
    # A copy, as checks write beside what they read.
    stage = Path(tempfile.mkdtemp(dir=scratch))
    try:
        shutil.copytree(kept, stage, dirs_exist_ok=True)
        check.executable, check.runs_script = case.job.executable, case.job.runs_script
        check.ended_job = EndedJob(
            stage,
            _plain_name(case.files.stdout),
            _plain_name(case.files.stderr),
            case.job.exit_code or 0,
            'COMPLETED',
            tuple(case.job.nodes),
        )
        figures: Mapping[str, Figure] = check.read_job()
        check.tell_what_ran()
        reports = [*reports_in(stage)]
        _assert_on_its_nodes([check.ran, *reports], case)
        if case.no_evidence and not interference(reports, foreign=True):
            raise AssayError('it is told as disturbed, and no witness saw others')
        return figures
    finally:
        shutil.rmtree(stage)


def _plain_name(name: str) -> str:
    """:raises AssayError: if it would lead out of a folder."""
    if name != Path(name).name or name in ('.', '..'):
        raise AssayError(f'{name!r} is no name of an output')
    return name


def _parameters(case: Case) -> dict[str, str]:
    """The parameters in the name of a case."""
    return dict(word[1:].split('=', 1) for word in case.display_name.split()[1:])


def _at_its_scale(cls: Any, case: Case) -> Any:
    """The check of a case: made before ReFrame has a system, it has the usual scales alone.

    A system may offer any number of nodes to a check that takes all of them.
    """
    from reframe.core.builtins import parameter
    from reframe.core.meta import make_test

    scale = _parameters(case).get('scale', '')
    usual = cls.param_space.params['scale'].values
    if number_in(scale) is None or scale in usual or not {*PARTS} <= {*usual}:
        return cls
    own = {'scale': parameter([scale], type=str, loggable=True)}
    return make_test(cls.__name__, (cls,), own)


def _variant(cls: Any, case: Case) -> int:
    """Which of a check's variants a case is of, by the parameters in its name."""
    given = _parameters(case)
    known = {name: param for name, param in cls.param_space.params.items() if name in given}

    def is_given(name: str) -> Any:
        return lambda value: str(cls.raw_params[name].format(value)) == given[name]

    found = cls.get_variant_nums(**{name: is_given(name) for name in known})
    if len(found) != 1 or known.keys() != given.keys():
        raise AssayError(f'this checkout has no case {case.display_name}')
    number: int = found[0]
    return number


def _assert_on_its_nodes(reports: Iterable[Witnessed], case: Case) -> None:
    """Hold where its ranks were against where the report says.

    :param reports: of the witness, of all programs of the job: some are run on a part of its nodes.
    :raises AssayError: if they were on other nodes, or on fewer.
    """
    nodes = {name.partition('.')[0] for name in case.job.nodes}
    hosts = {host.name.partition('.')[0] for one in reports for host in one.hosts}
    if strange := hosts - nodes:
        raise AssayError(
            f'its ranks ran on {", ".join(sorted(strange))}, and the report says on '
            f'{", ".join(sorted(nodes))}'
        )
    if idle := nodes - hosts:
        raise AssayError(f'none of its ranks ran on {", ".join(sorted(idle))} of the report')


def _differences(told: Iterable[CaseFigure], figures: Mapping[str, Figure]) -> Iterator[str]:
    """Sentences: where a report says something else than the outputs."""
    if missing := sorted(figures.keys() - {one.name for one in told}):
        yield f'the report lacks {", ".join(missing)}, which the outputs have'
    for one in told:
        name, value, unit = one.name, one.value, one.unit
        if name not in figures:
            yield f'the report has {name}, which the outputs do not have'
        elif not is_number(value) or not math.isclose(value, figures[name].value, rel_tol=SAME):
            yield (
                f'{name} is {value!r} {unit} in the report, and {figures[name].value!r} '
                f'{figures[name].unit} by the outputs: the report was changed'
            )
        elif unit != figures[name].unit:
            yield f'{name} is in {unit} in the report, and in {figures[name].unit} by the outputs'
        if name in figures and one.better != figures[name].better:
            yield f'better of {name} is told as {one.better}, and is {figures[name].better}'


def _misjudged(case: Case) -> Iterator[str]:
    """Sentences: where the words of a case are not what its values and bounds say."""
    missed = []
    for one in case.figures:
        name, word = one.name, one.result
        is_missed = is_beyond(one.value, one.lower, one.upper)
        if is_missed != (word in ('fail', 'xfail')):
            yield f'{name} is told as {word}, and {"missed" if is_missed else "met"} its bounds'
        if is_missed and word == 'fail':
            missed.append(name)
    if missed and case.result != 'fail':
        yield f'it is told as {case.result}, and {many(len(missed), "figure")} missed'
    # Where others were seen, a good value could be lost else.
    if case.result == 'fail' and case.no_evidence and not missed:
        yield 'it is told as disturbed, and none of its figures missed its bounds'
