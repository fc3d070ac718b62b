"""A site's own applications: what their file may say, and how outputs are read."""

from types import SimpleNamespace

import pytest
from reframe.core.exceptions import ReframeError, SkipTestError

from assay.checks import site
from assay.config import applications
from assay.config.applications import ApplicationsError
from assay.config.reference_files import Reference
from assay.programs.figure import Figure

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
    assert steps.value(OUTPUT) == 125.5  # the last one
    assert (steps.quantity.unit, steps.quantity.better) == ('1/s', 'higher')


@pytest.mark.parametrize(
    ('old', 'new', 'told'),
    [
        ('-6.603', '-6.65', "its answer is '-6.65'"),
        ('-6.603', 'nan', "its answer is 'nan'"),
        ('   100', '   200', 'its output has no'),
        ('Total', 'Lost', 'its output has no'),
    ],
)
def test_a_wrong_answer_is_told(read, old, new, told):
    faults = [one.fault(OUTPUT.replace(old, new)) for one in read(ENTRY)['lammps'].answer]
    assert any(told in fault for fault in faults if fault)


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
    assert applications.measured_by(both) == {'steps': both['lammps'].figures['steps'].quantity}


def test_bounds_are_a_reference_that_can_fail(read, tmp_path):
    steps = read(ENTRY)['lammps'].figures['steps']
    held = Reference.read(steps.reference, tmp_path)
    assert held.fault('steps', Figure(99.0, '1/s', 'higher')) is None
    assert held.as_reframe()[:2] == (100.0, 0.0)


@pytest.mark.parametrize(
    ('old', 'new', 'told'),
    [
        ('mpi: openmpi', 'mpi: lam', "'lam' is none of"),
        ("'([0-9.]+) timesteps/s'", "'timesteps/s'", 'has no group'),
        ('(\\S+)', '\\S+', 'has no group'),
        ('command: [/usr/bin/lmp, -in, in.lj]', 'command: []', 'command'),
        ('unit: 1/s, ', '', 'unit'),
        ('better: higher', 'better: more', 'better'),
        ("'Total wall time'", "'Total ('", 'not a valid expression'),
        ('    mpi', '    nodes: 3\n    mpi', 'nodes'),
    ],
)
def test_a_wrong_entry_is_told_with_its_place(read, old, new, told):
    assert old in ENTRY
    with pytest.raises(ApplicationsError, match=f'(?s)applications.yaml.*{told}'):
        read(ENTRY.replace(old, new))


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
