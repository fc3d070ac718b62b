"""Binding and fabric, proved in real jobs: right ones pass, and each wrong one has its sentence."""

import os
from pathlib import Path

import pytest
from reframe.utility.cpuinfo import cpuinfo

from assay import witness
from assay.config.fabrics import load_catalogue
from assay.layout.launchers import add_part_script, command_of_parts
from assay.layout.layouts import LAYOUTS, NodeShape
from assay.witness.traffic import verify_traffic

pytestmark = pytest.mark.differs_by_mpi

CATALOGUE = load_catalogue()
CPUSETS = Path('/sys/fs/cgroup/cpuset')


@pytest.fixture(scope='session')
def node():
    topology = cpuinfo()
    cores = topology['num_cpus'] // topology['num_cpus_per_core']
    if cores < 2 or len(os.sched_getaffinity(0)) < topology['num_cpus']:
        pytest.skip('needs a machine with two cores, and all of its CPUs')
    return NodeShape(cores, len(topology['topology']['numa_nodes']), topology['num_cpus_per_core'])


@pytest.fixture
def exchange(mpi, compiled, witnessed, node, tmp_path):
    """Runs the program exchange.c in a layout; returns the sentence on its placement, or None.

    ``within``: a command that the ranks are started by; ``launch`` replaces the layout's options.
    """
    program = compiled('exchange', '-fopenmp')

    def run(layout, ranks=2, launch=None, within=(), arguments=(), env=None):
        placement = LAYOUTS[layout].place(mpi.family, node, ranks)
        options = placement.options if launch is None else launch
        command, *others = [*within, str(program), *arguments]
        if placement.widths:
            add_part_script(tmp_path)
            command, *others = command_of_parts(placement.widths, str(program), str(program))
        ended = witnessed(
            command,
            *others,
            ranks=placement.ranks,
            launch=tuple(' '.join(options).split()),
            env={**placement.env, **(env or {})},
        )
        assert ended.code == 0, ended.out + ended.err
        report = witness.read_witness(ended.files / 'report.json')
        return LAYOUTS[layout].verify(report, placement)

    return run


def unbound(mpi):
    """Launcher options, and variables, with which ranks are not bound."""
    options = {'openmpi': ['--bind-to none'], 'mpich': ['-bind-to none'], 'intelmpi': []}
    return options[mpi.family], {'I_MPI_PIN': '0'}


@pytest.mark.parametrize('layout', [name for name, one in LAYOUTS.items() if not one.side])
def test_every_layout_passes(exchange, layout):
    assert exchange(layout) is None


def test_all_ranks_on_one_core(exchange, mpi):
    launch, env = unbound(mpi)
    said = exchange('packed', launch=launch, within=('taskset', '-c', '0'), env=env)
    assert said and said.startswith('ranks 0 and 1 share core 0 of node '), said


def test_two_ranks_on_one_core_of_several(exchange, mpi, node, tmp_path):
    if node.cores < 3:
        pytest.skip('needs a machine with three cores: this one has 2')
    launch, env = unbound(mpi)
    script = tmp_path / 'bind.sh'
    rank = '${OMPI_COMM_WORLD_RANK:-$PMI_RANK}'
    script.write_text(f'exec taskset -c $(( {rank} > 0 ? {rank} - 1 : 0 )) "$@"\n')
    said = exchange('packed', 3, launch, ('sh', str(script)), env=env)
    assert said and said.startswith('ranks 0 and 1 share core 0 of node '), said


def test_unbound(exchange, mpi):
    launch, env = unbound(mpi)
    said = exchange('packed', launch=launch, env=env)
    assert 'not bound' in said, said


def test_bound_where_the_whole_node_was_asked_for(exchange, mpi):
    launch, env = unbound(mpi)
    said = exchange('one-per-node', launch=launch, within=('taskset', '-c', '0'), env=env)
    assert said and 'one-per-node' in said, said


@pytest.mark.parametrize(
    'how', [{'env': {'OMP_NUM_THREADS': '4'}}, {'arguments': ('4',)}], ids=['asked for', 'started']
)
def test_more_threads_than_cpus(exchange, how):
    said = exchange('packed', **how)
    assert said and 'runs 4 threads on 1 core' in said, said


def test_a_cpuset_that_is_too_small(exchange, mpi):
    if os.geteuid() != 0 or not os.access(CPUSETS / 'cpuset.mems', os.R_OK):
        pytest.skip('needs root and a cpuset hierarchy of control groups (version 1)')
    cpuset = CPUSETS / f'assay-test-{os.getpid()}'
    cpuset.mkdir()
    try:
        (cpuset / 'cpuset.mems').write_text((CPUSETS / 'cpuset.mems').read_text())
        (cpuset / 'cpuset.cpus').write_text('0')
        launch, env = unbound(mpi)
        enter = f'echo $$ > {cpuset}/tasks; exec "$@"'
        said = exchange('packed', launch=launch, within=('sh', '-c', enter, 'sh'), env=env)
    finally:
        cpuset.rmdir()
    assert 'cpuset' in said and 'needs 2' in said, said


# Fabrics: by the MPI's own statement, and by the bytes that were counted -------------------------


@pytest.mark.parametrize('used', CATALOGUE.fabrics)
def test_fabric_is_proved_twice(mpi, compiled, witnessed, used):
    if absent := CATALOGUE.why_missing(used, mpi):
        pytest.skip(f'{mpi.name} has no {used} here: {absent}')
    env = CATALOGUE.variables(used, mpi.family)
    ended = witnessed(compiled('exchange', '-fopenmp'), env=env)
    assert ended.code == 0, ended.err
    report = witness.read_witness(ended.files / 'report.json')
    carried_by = CATALOGUE.fabrics[used].carrier
    for asked, fabric in CATALOGUE.fabrics.items():
        if CATALOGUE.recipe(asked, mpi.family) is None or fabric.needs_device:
            continue
        stated = CATALOGUE.verify(asked, mpi.family, [ended.out, ended.err])
        counted = verify_traffic(report, fabric.carrier, asked)
        assert (stated is None) == (asked == used), f'{asked}: {stated}'
        assert (counted is None) == (fabric.carrier == carried_by), f'{asked}: {counted}'
        if counted:
            assert counted.startswith(f'fabric {asked} was asked for, but '), counted
            assert 'carried' in counted and 'MB' in counted, counted
