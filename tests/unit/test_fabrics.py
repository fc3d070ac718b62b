"""The catalogue: validation, and the verdict on what each MPI really printed."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from assay import AssayError
from assay.config import yaml_file
from assay.config.fabrics import CATALOGUE, load_catalogue
from assay.mpis import FAMILIES, Recipe
from found import MPICH

STATEMENTS = Path(__file__).parents[1] / 'golden' / 'statements'
catalogue = load_catalogue()

# Runs that used another transport than the one in their name, or ended before they said which:
# what the verdict must say. All others are what their name says.
WRONG = {
    'mpich-4.0.2-shm': 'tag(sysv/memory',
    'mpich-4.0.2-ofi-tcp': 'tag(sysv/memory',
    'mpich-5.0.2-ucx-tcp': 'MPIR_CVAR_NOLOCAL = 1',
    'openmpi-5.0.11-ucx-tcp': 'component ucx selected',
    'openmpi-5.0.9-shm-but-tcp': 'tcp was used instead',
    'mpich-4.3.2-shm-but-ofi-tcp': 'ofi-tcp was used instead',
    'mpich-4.3.2-ofi-tcp-but-shm': 'shm was used instead',
    'intelmpi-2021.16-shm-but-ofi-tcp': 'ofi-tcp was used instead',
    'mpich-4.3.2-ofi-tcp-truncated': 'does not say in the output',
}


def asked(stem):
    family, _, fabric = stem.split('-', 2)
    for end in ('-but-', '-killed', '-truncated'):
        fabric = fabric.split(end)[0]
    return family, fabric


@pytest.mark.parametrize('stem', sorted(p.stem for p in STATEMENTS.glob('*.out')))
def test_verdict_on_real_statements(stem):
    family, fabric = asked(stem)
    verdict = catalogue.verify(fabric, family, [(STATEMENTS / f'{stem}.out').read_text()])
    if stem in WRONG:
        assert verdict is not None and f'fabric {fabric} was asked for' in verdict
        assert WRONG[stem] in verdict
    else:
        assert verdict is None


def test_every_wrong_statement_is_there():
    assert {p.stem for p in STATEMENTS.glob('*.out')} >= set(WRONG)


@pytest.mark.parametrize('stem', sorted(p.stem for p in STATEMENTS.glob('*.out')))
def test_a_statement_shows_at_most_one_fabric(stem):
    family, _ = asked(stem)
    text = (STATEMENTS / f'{stem}.out').read_text()
    recipes = {name: catalogue.recipe(name, family) for name in catalogue.fabrics}
    assert sum(r is not None and r.is_shown_by([text]) for r in recipes.values()) <= 1


# What the MPIs of clusters print for fabrics that need a device: written after their sources'
# formats, since no machine with the device was at hand.
INTER_NODE = {
    ('ucx-ib', 'openmpi'): (
        '  on-host:  all connections are n/a\n'
        '  off-host: all connections are ucx=rc_mlx5;mlx5_0:1\n'
        'ucp_worker.c:1903 UCX  INFO    ucp_context_0 inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)\n'
    ),
    ('ucx-ib', 'mpich'): (
        'CVAR: MPIR_CVAR_CH4_NETMOD = ucx\n'
        'ucp_worker.c:1903 UCX  INFO    ucp_context_0 inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)\n'
    ),
    ('ofi-cxi', 'openmpi'): (
        '  off-host: all connections are ofi\nlibfabric:9:1::cxi:ep_ctrl:cxip_ep_enable():1<info>\n'
    ),
    ('ofi-cxi', 'mpich'): 'libfabric provider: cxi - cxi0\n',
    ('ofi-cxi', 'intelmpi'): '[0] MPI startup(): libfabric provider: cxi\n',
    ('ofi-psm', 'openmpi'): (
        '  off-host: all connections are ofi\n'
        'libfabric:9:1::psm2:ep_ctrl:psmx2_ep_open_internal():1<info>\n'
    ),
    ('ofi-psm', 'mpich'): 'libfabric provider: psm2 - hfi1_0\n',
    ('ofi-psm', 'intelmpi'): '[0] MPI startup(): libfabric provider: psm2\n',
}


@pytest.mark.parametrize(('fabric', 'family'), INTER_NODE)
def test_cluster_fabrics(fabric, family):
    assert catalogue.verify(fabric, family, [INTER_NODE[fabric, family]]) is None
    for (other, its_family), text in INTER_NODE.items():
        if its_family == family and other != fabric:
            assert catalogue.verify(fabric, family, [text]) is not None


def test_cluster_fabric_that_fell_back_to_tcp():
    text = (
        '  off-host: all connections are ucx=tcp;eth0\n'
        'UCX  INFO    ucp_context_0 inter-node cfg#1 tag(tcp/eth0)\n'
    )
    verdict = catalogue.verify('ucx-ib', 'openmpi', [text])
    assert 'ucx-tcp was used instead' in verdict and 'tcp/eth0' in verdict


UCX_LINES = {
    # UCX 1.14 and newer, and those before.
    'new': '[1.2] [n1:7 :0] ucp_worker.c:1903 UCX  INFO    ucp_context_0 {where} cfg#1 {lanes}\n',
    'old': '[1.2] [n1:7 :0] ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: {lanes}\n',
}


def said_by_ucx(family, age, lanes, where='inter-node'):
    selected = {
        'openmpi': '[n1:7] select: component ucx selected\n  off-host: all connections are ucx=\n',
        'mpich': 'CVAR: MPIR_CVAR_NOLOCAL = 1\nCVAR: MPIR_CVAR_CH4_NETMOD = ucx\n',
    }
    return [selected[family], UCX_LINES[age].format(where=where, lanes=lanes)]


@pytest.mark.parametrize('family', ['openmpi', 'mpich'])
@pytest.mark.parametrize('age', UCX_LINES)
@pytest.mark.parametrize(
    ('fabric', 'where', 'right', 'wrong'),
    [
        ('ucx-tcp', 'inter-node', 'tcp/eth0', 'rc_mlx5/mlx5_0:1'),
        ('ucx-tcp', 'intra-node', 'tcp/lo', 'cma/memory'),
        ('ucx-shm', 'intra-node', 'sysv/memory', 'tcp/eth0'),
        ('ucx-shm', 'intra-node', 'posix/memory', 'ud_verbs/mlx5_0:1'),
        ('ucx-ib', 'inter-node', 'rc_mlx5/mlx5_0:1', 'tcp/eth0'),
        ('ucx-ib', 'inter-node', 'dc_mlx5/mlx5_bond_0:1', 'srd/rdmap0:1'),
    ],
)
def test_every_lane_of_ucx_counts(family, age, fabric, where, right, wrong):
    for lanes in (f'tag({right})', f'tag({right} {right})  rma({right})  am({right} {right})'):
        assert catalogue.verify(fabric, family, said_by_ucx(family, age, lanes, where)) is None
    for lanes in (
        f'tag({right} {wrong})',
        f'tag({right})  am({wrong})',
        f'tag({right}) rma_am({right} {wrong}) am({right})',
        f'tag({right})  rma({right})  amo({wrong})',
    ):
        # One connection of very many.
        fine = said_by_ucx(family, age, f'tag({right})', where)
        said = catalogue.verify(
            fabric, family, [*fine, *said_by_ucx(family, age, lanes, where)[1:], *fine]
        )
        assert said and wrong in said


def test_memory_is_no_way_between_nodes():
    lanes = 'tag(rc_mlx5/mlx5_0:1 cma/memory)'
    assert catalogue.verify('ucx-ib', 'mpich', said_by_ucx('mpich', 'new', lanes))
    within = said_by_ucx('mpich', 'new', 'tag(sysv/memory rc_mlx5/mlx5_0:1)', 'intra-node')
    between = said_by_ucx('mpich', 'new', 'tag(rc_mlx5/mlx5_0:1)')
    assert catalogue.verify('ucx-ib', 'mpich', within + between) is None


@pytest.mark.parametrize('fabric', ['shm', 'tcp', 'ofi-tcp'])
def test_the_host_of_a_warning_is_no_way(fabric):
    """Open MPI's warnings name the host that they are about."""
    stem, family = f'openmpi-5.0.9-{fabric}', 'openmpi'
    warning = 'WARNING: No preset parameters were found for the device\n\n  Local host: n1\n'
    text = (STATEMENTS / f'{stem}.out').read_text()
    assert catalogue.verify(fabric, family, [warning + text]) is None


@pytest.mark.parametrize(
    ('stem', 'also'),
    [
        ('mpich-4.3.2-ofi-tcp', 'libfabric:9:1::verbs:ep_ctrl:vrb_ep():1<info> FI_CONNECTED\n'),
        ('mpich-4.3.2-ofi-tcp', 'libfabric provider: verbs;ofi_rxm - mlx5_0\n'),
        ('openmpi-5.0.9-ofi-tcp', 'libfabric:9:1::efa:ep_ctrl:efa_ep():1<info> open\n'),
    ],
)
def test_another_provider_beside_the_right_one(stem, also):
    family, fabric = asked(stem)
    text = (STATEMENTS / f'{stem}.out').read_text()
    assert catalogue.verify(fabric, family, [text, also]) is not None


def test_what_speaks_against_a_fabric_is_quoted_first():
    fine = [f'UCX INFO intra-node cfg#{n} tag(tcp/lo)\n' for n in range(20)]
    wrong = 'UCX INFO ep_cfg[3]: tag(tcp/lo cma/x)\n'
    said = catalogue.verify('ucx-tcp', 'openmpi', [*fine, wrong, *fine])
    assert 'Open MPI says: ep_cfg[3]: tag(tcp/lo cma/x); intra-node cfg#0' in said
    assert said.count('tag(') == 5


def test_psm3_is_not_omni_path():
    said = ['[0] MPI startup(): libfabric provider: psm3\n']
    verdict = catalogue.verify('ofi-psm', 'intelmpi', said)
    assert 'fabric ofi-psm was asked for' in verdict and 'psm3' in verdict


def test_an_empty_output_proves_nothing():
    for name in catalogue.fabrics:
        for family in FAMILIES:
            if catalogue.recipe(name, family):
                assert 'does not say' in catalogue.verify(name, family, [])


def test_an_expression_may_speak_of_the_ends_of_any_line():
    recipe = Recipe(requires='.', env={}, expect=['^by way of shm$'])
    assert recipe.is_shown_by(['rank 0\nby way of shm\nrank 1\n'])


def an_mpi(family, description):
    return replace(MPICH, name=family, family=family, version='1.2.3', description=description)


def test_missing_says_why():
    assert 'no way to force' in catalogue.why_missing('tcp', an_mpi('mpich', 'ch4:ofi'))
    reason = catalogue.why_missing('ucx-tcp', an_mpi('openmpi', 'MCA pml: ob1'))
    assert 'Open MPI (1.2.3)' in reason and 'MCA pml: ucx' in reason
    assert catalogue.why_missing('shm', an_mpi('openmpi', 'MCA btl: sm (MCA v2.1.0)')) is None


def test_missing_device(monkeypatch):
    monkeypatch.setattr('assay.config.fabrics.glob.glob', lambda pattern: [])
    reason = catalogue.why_missing('ofi-cxi', an_mpi('mpich', 'ch4:ofi'))
    assert '/sys/class/cxi/*' in reason


def edited(tmp_path, edit):
    data = yaml.safe_load(CATALOGUE.read_text())
    edit(data)
    path = tmp_path / 'fabrics.yaml'
    path.write_text(yaml.safe_dump(data))
    return path


def efa(**recipe):
    """The entry of a fabric that a site adds, with a recipe for Open MPI."""
    right = {
        'requires': 'MCA mtl: ofi',
        'env': {'FI_PROVIDER': 'efa'},
        'expect': ['all connections are ofi', '::efa:'],
    }
    return {
        'description': 'EFA, by libfabric',
        'reach': 'network',
        'carrier': 'infiniband',
        'device': '/sys/class/infiniband/efa_*',
        'openmpi': right | recipe,
    }


def test_a_fabric_of_a_site_is_one_entry(tmp_path):
    found = load_catalogue(edited(tmp_path, lambda d: d['fabrics'].update(efa=efa())))
    assert found.fabrics['efa'].crosses_nodes and found.fabrics['efa'].needs_device
    assert found.variables('efa', 'openmpi')['FI_PROVIDER'] == 'efa'
    assert found.recipe('efa', 'mpich') is None
    assert found.no_recipe('efa', an_mpi('openmpi', 'MCA mtl: ofi')) is None
    said = ['  off-host: all connections are ofi\n', 'libfabric:1::efa:ep_ctrl:\n']
    assert found.verify('efa', 'openmpi', said) is None
    assert 'efa was used instead' in found.verify('tcp', 'openmpi', said)


@pytest.mark.parametrize(
    ('edit', 'words'),
    [
        (lambda d: d['fabrics'].update(efa=efa(expect=[])), 'fabrics.efa.openmpi.expect: '),
        (lambda d: d['fabrics']['tcp'].update(reach='moon'), 'fabrics.tcp.reach: '),
        (lambda d: d['fabrics']['tcp'].pop('carrier'), 'fabrics.tcp.carrier: '),
        (lambda d: d['fabrics']['tcp'].update(colour='red'), 'fabrics.tcp.colour: '),
        (
            lambda d: d['fabrics'].update(efa=efa(expect=['('])),
            'fabrics.efa.openmpi.expect.0: Value error, not a valid expression',
        ),
        (lambda d: d['fabrics'].update(efa=efa(env={'A': 1})), 'fabrics.efa.openmpi.env.A: '),
        (lambda d: d['fabrics'].update(efa=efa(also=1)), 'fabrics.efa.openmpi.also: '),
        (
            lambda d: d['fabrics'].update(tcp=efa()),
            'fabrics.tcp.openmpi: lib/assay/mpis/openmpi.py has a recipe for it as well: keep one',
        ),
        (
            lambda d: d['fabrics'].update(uxc=d['fabrics'].pop('ucx-ib')),
            'fabrics.ucx-ib: not there, and lib/assay/mpis/mpich.py has a recipe for it',
        ),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, edit, words):
    path = edited(tmp_path, edit)
    with pytest.raises(AssayError) as error:
        load_catalogue(path)
    assert str(path) in str(error.value) and words in str(error.value)


def test_unreadable_catalogue(tmp_path):
    with pytest.raises(AssayError, match='cannot be read: No such file'):
        load_catalogue(tmp_path / 'absent.yaml')
    broken = tmp_path / 'broken.yaml'
    broken.write_text('fabrics: [unclosed')
    with pytest.raises(AssayError, match='not valid YAML'):
        load_catalogue(broken)


def test_a_key_that_stands_twice_is_an_error_with_its_line(tmp_path):
    path = edited(tmp_path, lambda data: None)
    text = path.read_text()
    path.write_text(f'{text}fabrics: {{}}\n')
    line = text.count('\n') + 1
    with pytest.raises(AssayError, match=rf"line {line}: the key 'fabrics' stands twice"):
        load_catalogue(path)


@pytest.mark.skipif(not yaml.__with_libyaml__, reason='PyYAML itself takes no tab there')
def test_a_wrong_entry_beside_a_tab_is_named(tmp_path):
    path = tmp_path / 'fabrics.yaml'
    path.write_text('fabrics:\n  shm:\tnothing\n')
    with pytest.raises(AssayError, match='line 2: fabrics'):
        load_catalogue(path)


def test_yaml_is_read_where_there_is_no_libyaml(monkeypatch):
    monkeypatch.delattr('yaml.CSafeLoader', raising=False)
    parse = runpy.run_path(yaml_file.__file__)['parse_yaml']
    assert parse('a: [1]', Path('some.yaml')) == {'a': [1]}
    with pytest.raises(AssayError, match="line 2: the key 'a' stands twice"):
        parse('a: 1\na: 2\n', Path('some.yaml'))
