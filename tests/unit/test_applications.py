"""A site's own applications: what their file may say, and how outputs are read."""

from types import SimpleNamespace

import pytest
from reframe.core.exceptions import ReframeError, SanityError, SkipTestError

from assay import AssayError
from assay.checks import site
from assay.config.reference_files import Reference
from assay.programs.figure import Figure
from assay.running import site_applications as applications

ENTRY = """
applications:
  lammps:
    command: [/usr/bin/lmp, -in, in.lj]
    mpi: openmpi
    inputs: [in.lj]
    answer:
      - find: 'Total wall time'
      - find: '^ +100 +\\S+ +(\\S+)'
        value: -6.6
        within: 0.01
    figures:
      steps: {find: '([0-9.]+) timesteps/s', unit: 1/s, better: higher, at_least: 100}
"""
OUTPUT = """
     0   3.0   -7.5
   100   1.6   -6.603
Performance: 12.5 timesteps/s
Performance: 125.5 timesteps/s
Total wall time: 0:00:01
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads a file of applications."""
    monkeypatch.setattr(applications.paths, 'SYSTEMS', tmp_path)

    def read(text):
        applications.site_applications.cache_clear()
        (tmp_path / 'applications.yaml').write_text(text)
        return applications.site_applications()

    yield read
    applications.site_applications.cache_clear()


def test_an_output_is_read(read):
    entry = read(ENTRY)['lammps']
    assert [one.fault(OUTPUT) for one in entry.answer] == [None, None]
    steps = entry.figures['steps']
    assert steps.number(steps.find, OUTPUT) == 125.5  # the last one
    assert (steps.quantity.unit, steps.quantity.better) == ('1/s', 'higher')


@pytest.mark.parametrize(
    ('old', 'new', 'told'),
    [
        ('-6.603', '-6.65', 'its answer is -6.65'),
        ('-6.603', 'nan', "'nan' is no number"),
        ('   100', '   200', 'its output has no'),
        ('Total', 'Lost', 'its output has no'),
    ],
)
def test_a_wrong_answer_is_told(read, old, new, told):
    faults = [one.fault(OUTPUT.replace(old, new)) for one in read(ENTRY)['lammps'].answer]
    assert any(told in fault for fault in faults if fault)


@pytest.mark.parametrize(
    ('take', 'number'),
    [
        ('last', 2),
        ('first', 4),
        ('max', 9),
        ('min', 2),
        ('sum', 15),
        ('mean', 5),
        ('median', 4),
    ],
)
def test_of_several_numbers_the_entry_says_which(read, take, number):
    steps = read(ENTRY.replace('unit: 1/s', f'take: {take}, unit: 1/s'))['lammps'].figures['steps']
    output = 'x 4.0 timesteps/s\nx 9 timesteps/s\nx 2.0 timesteps/s\n'
    assert steps.number(steps.find, output) == number
    assert steps.number(steps.find, 'none') is None


HELD = """value: -6.6
        within: 0.01"""


@pytest.mark.parametrize(
    ('held', 'is_right'),
    [
        ('value: -6.6\n        relative: 1e-3', True),  # a text of YAML, as it has no point
        ('value: -6.6\n        relative: 1e-4', False),
        ('value: -6603e-3', True),
        ('value: -6.6', False),
        ('take: first\n        value: -6.6\n        within: 1', True),
    ],
)
def test_a_tolerance_is_absolute_or_relative(read, held, is_right):
    assert HELD in ENTRY
    (_, answer) = read(ENTRY.replace(HELD, held))['lammps'].answer
    assert (answer.fault(OUTPUT) is None) == is_right


def test_a_program_that_ends_well_may_tell_of_a_failure(read):
    entry = read(ENTRY.replace('    figures:', "      - forbid: 'ERROR.*'\n    figures:"))['lammps']
    assert [one.fault(OUTPUT) for one in entry.answer] == [None] * 3
    told = [one.fault(f'{OUTPUT}ERROR: lost atoms\n') for one in entry.answer]
    assert told == [None, None, "its output has 'ERROR: lost atoms'"]


def test_files_that_the_program_writes_are_read(read, tmp_path):
    """Also where they are kept without the folder that they were in."""
    entry = read(ENTRY.replace('unit: 1/s', "file: 'logs/run-*.csv', unit: 1/s"))['lammps']
    assert entry.files == ['logs/run-*.csv']
    job = tmp_path / 'job'
    (job / 'logs').mkdir(parents=True)
    case = SimpleNamespace(
        application='lammps',
        ended_job=SimpleNamespace(folder=job),
        launch=SimpleNamespace(text='x'),
    )

    def written():
        return site.SiteApplicationCheck.text_written(case, entry.figures['steps'])

    assert site.SiteApplicationCheck.text_written(case, entry.answer[0]) == 'x'
    with pytest.raises(SanityError, match=r'wrote no file logs/run-\*.csv'):
        written()
    (job / 'run-1.csv').write_text('[n1:2] kept')
    assert written() == '[n1:2] kept'  # no line of an MPI, as it is the program's own file
    (job / 'logs' / 'run-1.csv').write_text('there')
    assert written() == 'there'
    (job / 'logs' / 'run-2.csv').write_text('')
    with pytest.raises(SanityError, match=r'means run-1.csv and run-2.csv'):
        written()


def test_files_of_the_job_are_none_of_the_program(read, tmp_path):
    text = ENTRY.replace('inputs: [in.lj]', 'inputs: []')
    one = read(text.replace('unit: 1/s', "file: '*', unit: 1/s"))['lammps'].figures['steps']
    for name in ('rfm_job.out', 'witness.json', 'witness.json.finalized', 'hosts.json', '.hidden'):
        (tmp_path / 'job' / name).parent.mkdir(exist_ok=True)
        (tmp_path / 'job' / name).write_text('1 timesteps/s')
    case = SimpleNamespace(application='lammps', ended_job=SimpleNamespace(folder=tmp_path / 'job'))
    with pytest.raises(SanityError, match=r'wrote no file \*'):
        site.SiteApplicationCheck.text_written(case, one)


def test_a_file_may_be_too_large(read, tmp_path):
    one = read(ENTRY.replace('unit: 1/s', 'file: big, unit: 1/s'))['lammps'].figures['steps']
    with (tmp_path / 'big').open('wb') as file:
        file.truncate((1 << 24) + 1)
    case = SimpleNamespace(application='lammps', ended_job=SimpleNamespace(folder=tmp_path))
    with pytest.raises(SanityError, match='big has more than 16 MiB'):
        site.SiteApplicationCheck.text_written(case, one)


def test_files_are_kept_by_their_names_alone(read):
    text = ENTRY.replace('unit: 1/s', "file: 'a/run?.csv', unit: 1/s")
    at = "      - find: 'Total wall time'\n"
    assert at in text
    for other in ('a/run1.csv', 'b/run.csv'):
        read(text.replace(at, f'{at}        file: {other}\n'))
    with pytest.raises(AssayError, match='are kept without their folders, as one file'):
        read(text.replace(at, f'{at}        file: b/run1.csv\n'))


def test_what_a_script_runs_is_not_known(read, tmp_path):
    """Nor where its outputs are read again, and the script is not."""
    entry = read(ENTRY.replace('/usr/bin/lmp, -in', './run.sh, -in'))['lammps']
    (tmp_path / 'run.sh').write_text('#!/bin/sh\n')
    (tmp_path / 'in.lj').write_text('')
    job = tmp_path / 'job'
    job.mkdir()
    case = SimpleNamespace(
        application='lammps',
        entry=entry,
        program=tmp_path / 'run.sh',
        stagedir=job,
        keep_files=[],
        runs_script=False,
    )
    site.SiteApplicationCheck.put_program_and_inputs(case)
    (tmp_path / 'run.sh').unlink()
    assert site.SiteApplicationCheck.command_of(case, 'run.sh') is None
    assert site.SiteApplicationCheck.command_of(SimpleNamespace(runs_script=False), 'x') == 'x'


@pytest.mark.parametrize(
    ('ranks', 'best', 'runs'),
    [(1, 'shm', False), (1, 'tcp', True), (1, None, True), (2, 'shm', True)],
)
def test_one_rank_needs_one_fabric(ranks, best, runs):
    """But where none is for messages within a node it may have any."""
    skipped = []
    case = SimpleNamespace(
        application='x',
        num_tasks=ranks,
        fabric='tcp',
        best_fabric=best,
        skip_if=lambda condition, _: skipped.append(condition),
    )
    site.SiteApplicationCheck.send_messages(case)
    assert skipped == [not runs]


@pytest.mark.parametrize(
    ('ranks', 'nodes', 'cores', 'count'),
    [
        ('square', 1, 2, 1),
        ('square', 1, 8, 4),
        ('square', 2, 16, 8),
        ('square', 3, 2, None),
        ('cube', 1, 128, 125),
        ('cube', 1, 64, 64),
        ('power_of_two', 1, 48, 32),
        ('power_of_two', 3, 48, None),
        ('[4, 8]', 2, 16, 4),
        ('[4, 8]', 1, 3, None),
    ],
)
def test_ranks_are_as_many_as_it_can_run_with(read, ranks, nodes, cores, count):
    case = SimpleNamespace(
        cores_per_rank=1,
        node_count=nodes,
        place=lambda ranks, _: SimpleNamespace(ranks=cores if ranks is None else ranks),
    )
    allows = read(ENTRY + f'    ranks: {ranks}\n')['lammps'].allows
    assert site.SiteApplicationCheck.most_ranks_per_node(case, allows) == count


@pytest.mark.parametrize(
    ('old', 'new', 'clashes'),
    [('1/s', '1/s', False), ('1/s', 'atoms/s', True), ('better: higher', 'better: lower', True)],
)
def test_figures_of_one_name_are_of_one_kind(read, old, new, clashes):
    """Of two that differ the later one is refused; the first and all others go on."""
    entry = ENTRY.partition('applications:\n')[2]
    both = read(
        ENTRY
        + entry.replace('lammps:', 'other:').replace(old, new)
        + entry.replace('lammps:', 'third:')
    )
    told = [applications.clash(name, both) for name in both]
    assert told[0] is told[2] is None
    assert bool(told[1]) == clashes
    if clashes:
        assert 'other.figures.steps: lammps has a figure' in told[1]
    assert applications.figures_of_all(both) == {'steps': both['lammps'].figures['steps'].quantity}


def test_bounds_are_a_reference_that_can_fail(read, tmp_path):
    steps = read(ENTRY)['lammps'].figures['steps']
    held = Reference.read(steps.reference, tmp_path)
    assert held.fault('steps', Figure(99.0, '1/s', 'higher')) is None
    assert held.as_reframe()[:2] == (100.0, 0.0)


@pytest.mark.parametrize(
    ('old', 'new', 'line', 'told'),
    [
        ('mpi: openmpi', 'mpi: lam', 5, "mpi: .*'lam' is none of"),
        ("'([0-9.]+) timesteps/s'", "'timesteps/s'", 13, 'steps.find: .*has no group'),
        ('(\\S+)', '\\S+', 9, r'answer\.1: .*has no group'),
        ('command: [/usr/bin/lmp, -in, in.lj]', 'command: []', 4, 'command: '),
        ('unit: 1/s, ', '', 13, 'steps.unit: '),
        ('better: higher', 'better: more', 13, 'steps.better: '),
        ("'Total wall time'", "'Total ('", 8, 'find: .*not a valid expression'),
        ('    mpi', '    nodes: 3\n    mpi', 5, 'nodes: '),
        ('    mpi', '    layouts: [packed, pakced]\n    mpi', 5, "'pakced' is none of packed"),
        ('    mpi', '    ranks: odd\n    mpi', 5, "ranks: .*'odd' is none of square"),
        ('    mpi', '    ranks: [2, 0]\n    mpi', 5, 'ranks: .*or a list of numbers of ranks'),
        ('    mpi', '    ranks: [true]\n    mpi', 5, 'ranks: .*or a list of numbers of ranks'),
        ('at_least: 100', 'take: best', 13, "steps.take: .*'best' is none of last"),
        ('at_least: 100', 'file: ../x', 13, 'steps.file: .*no file of the job'),
        ('at_least: 100', 'file: in.l*', 3, r'and in\.lj is input'),
        ('at_least: 100', 'file: out/in.lj', 3, r'and in\.lj is input'),
        ('at_least: 100', "file: '**/x'", 13, r'steps.file: .*only \* and \?'),
        ('at_least: 100', 'file: "x[1].txt"', 13, r'steps.file: .*only \* and \?'),
        ('at_least: 100', 'at_least: 100, at_most: 9', 13, 'steps: .*no figure is at_least'),
        ('    mpi', '    layouts: []\n    mpi', 5, 'layouts: '),
        ('within: 0.01', 'within: some', 11, 'within: '),
        ('within: 0.01', 'within: .inf', 11, 'within: '),
        ('value: -6.6', 'value: .nan', 10, 'value: '),
        ('within: 0.01', 'relative: -1', 11, 'relative: '),
        ('within: 0.01', 'within: 1\n        relative: 1', 9, 'within or relative, and not both'),
        (HELD, 'value: 0\n        relative: 1', 9, 'a fraction of 0'),
        (HELD, 'within: 1', 9, 'no value that it is of'),
        (HELD, "forbid: 'E'", 9, 'find or forbid, and not both'),
        ("find: 'Total wall time'", 'take: last', 8, 'find or forbid, and not both'),
        ('applications:', 'applications: []\nothers:', 3, 'others: '),
        ('    mpi', '    build: make\n    mpi', 3, 'build: needs a repository'),
        ('    mpi', '    repository: .\n    mpi', 3, "'/usr/bin/lmp' is no file of a checkout"),
        ('    mpi', "    repository: ''\n    mpi", 5, 'repository: '),
    ],
)
def test_a_wrong_entry_is_told_with_its_place(read, old, new, line, told):
    assert old in ENTRY
    with pytest.raises(AssayError, match=f'applications.yaml, line {line}: .*{told}'):
        read(ENTRY.replace(old, new))


def test_without_a_right_answer_nothing_could_fail(read):
    text = ENTRY.replace("find: 'Total wall time'", "forbid: 'ERROR'").replace(HELD, 'value: 1')
    with pytest.raises(AssayError, match=r'line 3: .*needs a find'):
        read(text.replace("find: '^", "forbid: '^").replace('        value: 1\n', ''))


def test_a_site_may_have_none(tmp_path, monkeypatch):
    monkeypatch.setattr(applications.paths, 'SYSTEMS', tmp_path)
    applications.site_applications.cache_clear()
    assert applications.site_applications() == {}
    applications.site_applications.cache_clear()


def test_a_forced_fabric_counts_before_the_entry(read):
    """A case that is named for a fabric runs on it, whatever the entry sets."""
    entry = read(ENTRY + '    variables: {OMPI_MCA_pml: ob1, MODEL: water}\n')['lammps']
    case = SimpleNamespace(
        application='lammps',
        entry=entry,
        current_environ=SimpleNamespace(name='openmpi'),
        skip_if=lambda condition, _: None,
        env_vars={'OMPI_MCA_pml': 'ucx'},
    )
    site.SiteApplicationCheck.stay_where_it_can_run(case)
    assert case.env_vars == {'OMPI_MCA_pml': 'ucx', 'MODEL': 'water'}


def test_where_an_entry_does_not_run_nothing_of_it_is_wrong(read, monkeypatch):
    """Its cases are skipped there, also if a figure of it clashes with another entry's."""
    entry = read(ENTRY + '    environments: openmpi\n')['lammps']
    monkeypatch.setattr(site.applications, 'clash', lambda *_: 'two units')

    def skip_if(condition, why):
        if condition:
            raise SkipTestError(why)

    def setup(environment):
        case = SimpleNamespace(
            application='lammps',
            entry=entry,
            current_environ=SimpleNamespace(name=environment),
            skip_if=skip_if,
        )
        site.SiteApplicationCheck.stay_where_it_can_run(case)

    with pytest.raises(SkipTestError, match='does not run in lam'):
        setup('lam')
    with pytest.raises(ReframeError, match='two units'):
        setup('openmpi')
