"""Layouts: the numbers of ranks and threads, and the words of each launcher."""

import pytest

from assay.layout.layouts import LAYOUTS, NodeShape, layout_of

NODE = NodeShape(cores=64, numa_domains=4, threads_per_core=2)
LAUNCHERS = ('openmpi', 'mpich', 'intelmpi', 'srun')


@pytest.mark.parametrize('launcher', LAUNCHERS)
@pytest.mark.parametrize(
    ('layout', 'asked', 'ranks', 'threads', 'cpus'),
    [
        ('packed', None, 64, 1, 1),
        ('packed', 2, 2, 1, 1),
        ('spread', 2, 2, 1, 1),
        ('one-per-numa', None, 4, 1, 16),
        ('one-per-node', None, 1, 1, 64),
        ('hybrid', None, 4, 16, 16),
        ('mixed', None, 33, 1, None),
        ('threads', None, 128, 1, 1),
        ('cyclic', 2, 2, 1, 1),
        ('near', 2, 2, 1, 32),
        ('far', None, 16, 1, 4),
        ('default', 2, 2, 1, 1),
    ],
)
def test_ranks_threads_and_cpus(launcher, layout, asked, ranks, threads, cpus):
    placement = layout_of(layout).place(launcher, NODE, asked)
    assert (placement.ranks, placement.threads, placement.cpus) == (ranks, threads, cpus)
    assert placement.env['OMP_NUM_THREADS'] == str(threads)


@pytest.mark.parametrize('launcher', LAUNCHERS)
def test_each_layout_is_told_differently(launcher):
    own_words = [layout for layout in LAYOUTS.values() if not layout.words]
    told = {
        (tuple(p.options), tuple(sorted(p.env.items())))
        for p in (layout.place(launcher, NODE, 4) for layout in own_words)
    }
    assert len(told) == len(own_words)


def test_words():
    spread, hybrid = LAYOUTS['spread'], LAYOUTS['hybrid']
    assert spread.place('openmpi', NODE, 2).options == ['--map-by numa:PE=1', '--bind-to core']
    assert hybrid.place('mpich', NODE).options == ['-ppn 4', '-bind-to core:16 -map-by core:16']
    assert LAYOUTS['packed'].place('intelmpi', NODE, 2).env['I_MPI_PIN_DOMAIN'] == '1:compact'
    # Though a module of the site says I_MPI_PIN=off.
    assert LAYOUTS['packed'].place('intelmpi', NODE, 2).env['I_MPI_PIN'] == '1'
    cyclic, threads = LAYOUTS['cyclic'], LAYOUTS['threads']
    assert cyclic.place('openmpi', NODE, 2).options == ['--map-by node:PE=1', '--bind-to core']
    assert cyclic.place('mpich', NODE, 4).options[0] == cyclic.place('intelmpi', NODE, 4).options[0]
    assert cyclic.place('mpich', NODE, 4).options[0] == '-ppn 1', 'or ranks would fill a node'
    assert '--distribution=cyclic:block' in cyclic.place('srun', NODE, 4).options
    assert threads.place('openmpi', NODE).options[0] == '--use-hwthread-cpus', 'or it lacks slots'
    for launcher in LAUNCHERS:
        placed = LAYOUTS['default'].place(launcher, NODE, 2)
        words = ' '.join([*placed.options, *placed.env])
        assert not any(word in words for word in ('bind', 'map-by', 'PIN', 'distribution'))
    assert '--ntasks-per-node=4' in hybrid.place('srun', NODE).options


def test_ranks_that_differ_fill_the_node():
    assert LAYOUTS['mixed'].place('srun', NodeShape(cores=5, numa_domains=1)).widths == (2, 1, 1, 1)
    assert LAYOUTS['mixed'].place('srun', NodeShape(cores=2, numa_domains=1)).widths == (1, 1)


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('crowded', 'srun', NODE), "unknown layout 'crowded': choose from packed"),
        (('packed', 'ssh', NODE), "no layouts for launcher 'ssh'"),
        (('packed', 'srun', NODE, 33, 2), '33 ranks of 2 core'),
        (('packed', 'srun', NODE, 65), '65 ranks of 1 core'),
        (('packed', 'srun', NODE, None, 65), '1 ranks of 65 core'),
        (('near', 'srun', NodeShape(cores=8, numa_domains=1)), 'a node has one NUMA domain'),
        (('near', 'srun', NODE, 17), '17 ranks of 1 core.* do not fit on the 16 core.* of a NUMA'),
        (('far', 'srun', NODE, None, 17), '0 ranks of 17 core'),
        (('mixed', 'srun', NodeShape(cores=1, numa_domains=1)), 'ranks that differ do not fit'),
    ],
)
def test_refusals(arguments, words):
    name, *rest = arguments
    with pytest.raises(ValueError, match=words):
        layout_of(name).place(*rest)
