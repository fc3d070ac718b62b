"""Variables that steered a job and were set neither by the suite nor by the system's file."""

import json
import re
import tempfile

import pytest

from assay import paths, witness
from assay.checks.leftovers import variables_exported_by, variables_named_in, variables_set_by
from assay.config.environments import tcp_over
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.mpis import FAMILIES
from assay.results.failures import failures, left_in_good_cases
from assay.vcluster.node import ENVIRONMENT
from assay.witness.variables import LONGEST, OF_THE_SCHEDULER, STEERING, leftovers, of_ranks
from reports import cases, own_cases, run_of
from witnessed import halo

JOBS = paths.ROOT / 'tests' / 'golden' / 'jobs'
LAUNCHERS = paths.ROOT / 'tests' / 'golden' / 'launchers'

#: What the system's file sets for an MPI that comes as Intel's wheel does.
OF_THE_WHEEL = {'I_MPI_ROOT', 'FI_PROVIDER_PATH'}
OF_A_LAYOUT = {'OMP_NUM_THREADS', 'OMP_PLACES', 'OMP_PROC_BIND'}


def set_for(family, fabric):
    """What a check, its layout and the files of this machine's systems set for a job."""
    names = {name for name, _ in tcp_over('lo')} | OF_THE_WHEEL | OF_A_LAYOUT
    # Beside a job in which nothing is forced one runs over the best fabric of its node.
    names |= load_catalogue().variables('shm' if fabric == DEFAULT else fabric, family).keys()
    return names | FAMILIES[family].bind('packed', 2, 1)[1].keys()


def golden():
    for path in sorted(JOBS.glob('*/*')):
        for report in sorted(path.rglob('witness.json')):
            yield pytest.param(path.name, report, id=str(report.relative_to(JOBS).parent))


@pytest.mark.parametrize(('run', 'file'), [*golden()])
def test_clean_jobs_have_none(run, file):
    family, _, fabric = run.partition('-')
    assert (
        leftovers(of_ranks(witness.read_witness(file)), set_for(family, fabric), {}, family) == []
    )


def recorded(name):
    """The strings of a list in the witness's source."""
    source = (paths.SOURCES / 'witness' / 'variables.c').read_text()
    return re.findall('"(.+?)"', re.search(rf'{name}\[\] = \{{(.*?)\}};', source, re.DOTALL)[1])


@pytest.mark.parametrize('file', sorted(LAUNCHERS.iterdir()), ids=lambda path: path.stem)
def test_what_launchers_give_their_ranks_was_not_left(file):
    """Of `env` under the MPI's own launcher, in each layout, what steers."""
    seen = [line.partition('=')[::2] for line in file.read_text().splitlines()]
    found = {
        name: {value} for name, value in seen if not name.startswith((*recorded('of_a_start'),))
    }
    assert leftovers(found, (), {}, file.name.partition('-')[0]) == []


def left(environment, family='openmpi', set_for_it=(), asked_for=None):
    found = {name: {value} for name, value in environment.items()}
    return leftovers(found, set_for_it, asked_for or {}, family)


def test_what_a_user_asked_for_in_place_of_what_is_set_is_left():
    environment = {'OMPI_MCA_btl_tcp_if_include': 'lo', 'OMPI_MCA_pml': 'ob1'}
    assert left(environment, set_for_it=environment) == []
    assert left(environment, set_for_it=environment, asked_for=environment) == [
        'OMPI_MCA_btl_tcp_if_include=lo',
        'OMPI_MCA_pml=ob1',
    ]


def test_what_steers_another_mpi_does_not_matter():
    environment = {'OMPI_MCA_btl': '^tcp', 'MPIR_CVAR_NOLOCAL': '1', 'UCX_TLS': 'rc'}
    assert left(environment) == ['OMPI_MCA_btl=^tcp', 'UCX_TLS=rc']
    assert left(environment, 'mpich') == ['MPIR_CVAR_NOLOCAL=1', 'UCX_TLS=rc']
    assert left(environment, 'intelmpi') == left(environment, 'mpich')


@pytest.mark.parametrize('family', FAMILIES)
def test_what_slurm_puts_into_each_allocation_was_not_left(family):
    assert left(OF_THE_SCHEDULER, family) == []
    others = dict.fromkeys(OF_THE_SCHEDULER, 'ssh')
    assert {*left(others, family)} == {
        f'{name}=ssh'
        for name in OF_THE_SCHEDULER
        if name.startswith(FAMILIES[family].own_variables) or name.startswith('HYDRA_')
    }


def test_what_steers_only_the_start_comes_last():
    environment = {'HYDRA_DEBUG': '1', 'PMIX_MCA_a': '1', 'OMPI_MCA_plm_x': '1', 'UCX_TLS': 'rc'}
    assert left(environment)[0] == 'UCX_TLS=rc'
    assert left({'I_MPI_HYDRA_X': '1', 'I_MPI_PIN': '0'}, 'intelmpi')[0] == 'I_MPI_PIN=0'


def test_a_value_cannot_write_a_line_of_its_own():
    (found,) = left({'UCX_TLS': '\x1b[1A\nPASSED ' + 'x' * 5000})
    assert found.startswith(r'UCX_TLS=\x1b[1A PASSED xx')
    assert len(found) <= LONGEST


def test_each_value_of_ranks_that_differ_is_told():
    content = halo(2)
    content['environment'] = {'UCX_TLS': 'tcp', 'OMP_NUM_THREADS': '1'}
    content['processes'][1]['differs'] = {'environment': {'UCX_TLS': 'rc', 'KMP_X': '1'}}
    report = witness.Report.model_validate_json(json.dumps(content))
    found = leftovers(of_ranks(report), OF_A_LAYOUT, {}, 'mpich')
    assert found == ['KMP_X=1', 'UCX_TLS=rc', 'UCX_TLS=tcp']


def test_modules_and_what_is_not_there_are_none():
    content = halo(2) | {'environment': {'LOADEDMODULES': 'gcc', 'HOME': '/root'}}
    report = witness.Report.model_validate_json(json.dumps(content))
    assert of_ranks(report) == {}


def test_the_witness_records_what_is_called_steering():
    # LD_PRELOAD it records in its own way, without itself.
    assert set(recorded('steering')) == {*STEERING, 'LOADEDMODULES'} - {'LD_PRELOAD'}


def test_what_a_module_sets_is_found_where_it_is_loaded_already(monkeypatch):
    monkeypatch.setenv('LOADEDMODULES', 'openmpi/5.0')
    monkeypatch.setenv('UCX_TLS', 'tcp')
    # As the script of a module does it, which is not loaded twice.
    load = '[ -n "$LOADEDMODULES" ] || export OMPI_MCA_btl=^openib PATH=/x:$PATH'
    assert variables_set_by(('echo loading', load)) == {'OMPI_MCA_btl'}


def test_what_modules_do_finds_no_file_of_anybody(tmp_path, monkeypatch):
    for name in ('HOME', 'TMPDIR'):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / 'kept'
    kept.touch()
    assert variables_set_by(('rm -rf "$HOME"/* "$TMPDIR"/* ./*', 'export UCX_TLS=tcp')) == {
        'UCX_TLS'
    }
    assert kept.exists()


@pytest.mark.parametrize('command', ['exit 3', 'false', 'exit 0', 'no_such_command_at_all'])
def test_modules_that_fail_leave_it_unknown(command):
    assert variables_set_by((command, 'export UCX_TLS=tcp')) is None


def test_that_it_is_unknown_is_said_once(capsys):
    for name in ('FI_X', 'FI_Y'):
        assert variables_set_by((f'export {name}=1', 'exit 77')) is None
    said = "modules of the system's file set is not known: loading them ended with exit code 77"
    assert capsys.readouterr().err.count(said) == 1


def test_nor_is_it_known_without_a_shell_or_a_temporary_folder(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as none:
        none.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))
        assert variables_set_by(('export FI_X=1',)) is None
    monkeypatch.setenv('PATH', str(tmp_path))
    assert variables_set_by(('export FI_X=2',)) is None
    said = capsys.readouterr().err
    assert said.count('they could not be loaded: ') == 2


def test_names_in_commands_are_read():
    assert variables_named_in(
        ['cd $TMPDIR && rm -rf *', 'export UCX_TLS=rc FI_X=1', 'MY_UCX_NET=1']
    ) == {
        'UCX_TLS',
        'FI_X',
    }


def test_what_options_of_a_partition_export_is_known():
    access = ['--account=UCX_NET', '--export=ALL,UCX_TLS=rc,FI_X']
    assert variables_exported_by(access) >= {'UCX_TLS', 'FI_X'}
    assert 'UCX_NET' not in variables_exported_by(access)


BUFFERS = ['OMPI_MCA_btl_tcp_rcvbuf=2048', 'OMPI_MCA_btl_tcp_sndbuf=2048']


def test_a_failure_ends_with_what_was_left(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1].update(leftovers=BUFFERS, leftovers_seen=True)
    assert failures(run_of(report))[0].reason == (
        'another fabric was used; the environment sets OMPI_MCA_btl_tcp_rcvbuf=2048, '
        "OMPI_MCA_btl_tcp_sndbuf=2048, which neither Assay nor the system's file does"
    )


def test_so_does_a_missed_reference(golden_report):
    report = golden_report('FailedReference')
    cases(report)[1].update(leftovers=BUFFERS[:1], leftovers_seen=True)
    assert (
        ' is allowed (reference 20.00); the environment sets OM'
        in failures(run_of(report))[0].reason
    )


def test_where_no_rank_could_tell_the_script_does(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1].update(leftovers=[f'FI_{n}=1' for n in range(6)], leftovers_seen=False)
    assert failures(run_of(report))[0].reason.endswith(
        'its job was submitted with FI_0=1, FI_1=1, FI_2=1, FI_3=1 and 2 more, which neither Assay '
        "nor the system's file sets (what its ranks had is not known)"
    )


def test_how_ranks_find_each_other_explains_nothing_once_they_have(golden_report):
    report = golden_report('FailedSanity')
    left = {'leftovers': ['UCX_TLS=rc', 'PMIX_MCA_gds=hash']}
    cases(report)[1].update(left, leftovers_seen=True)
    assert 'UCX_TLS=rc, which' in failures(run_of(report))[0].reason
    cases(report)[1].update(leftovers=left['leftovers'][1:])
    assert failures(run_of(report))[0].reason == 'another fabric was used'
    cases(report)[1].update(left, leftovers_seen=False)
    assert 'UCX_TLS=rc, PMIX_MCA_gds=hash, which' in failures(run_of(report))[0].reason


def test_what_the_virtual_cluster_has_for_its_daemons_was_not_left():
    assert left(ENVIRONMENT) == []
    assert left({'PMIX_MCA_psec': 'munge'}) == ['PMIX_MCA_psec=munge']


def test_a_good_run_says_it_once(golden_report):
    report = golden_report('Passed')
    assert left_in_good_cases(run_of(report)) is None
    for case in own_cases(report):
        case.update(leftovers=['UCX_\x1b[1A=1', 'PMIX_MCA_psec=munge'], leftovers_seen=True)
    assert left_in_good_cases(run_of(report)) == (
        'set in the environment of cases that passed, but neither by Assay nor by the '
        r"system's file: UCX_\x1b[1A=1 (2 of 2 cases)"
    )


@pytest.mark.parametrize('is_seen', [True, False])
def test_what_the_file_does_is_not_claimed_where_it_is_not_known(golden_report, is_seen):
    report = golden_report('FailedSanity')
    cases(report)[1].update(leftovers=['UCX_TLS=rc'], leftovers_seen=is_seen, leftovers_unsure=True)
    (found, *_) = failures(run_of(report))
    assert 'UCX_TLS=rc, which Assay does not ' in found.reason
    assert found.reason.endswith(
        " (what the system's file sets by commands or modules is not known)"
    )
    assert 'neither' not in found.reason


def test_nor_of_a_good_run(golden_report):
    report = golden_report('Passed')
    for case in cases(report):
        case.update(leftovers=['UCX_TLS=rc'], leftovers_unsure=True)
    assert left_in_good_cases(run_of(report)) == (
        'set in the environment of cases that passed, but not by Assay: UCX_TLS=rc (2 of 2 cases) '
        "(what the system's file sets by commands or modules is not known)"
    )


def test_a_variable_with_a_value_for_each_job_hides_no_other(golden_report):
    report = golden_report('Passed')
    passed = own_cases(report)
    for number, case in enumerate(passed):
        case['leftovers'] = [f'UCX_TMPDIR=/tmp/{number}', f'UCX_TMPDIR=/scratch/{number}']
    passed[0]['leftovers'].append('FI_X=1')
    assert left_in_good_cases(run_of(report)).endswith(
        ': UCX_TMPDIR (4 values, 2 of 2 cases), FI_X=1 (1 of 2 cases)'
    )


def test_a_case_that_missed_a_reference_did_not_pass(golden_report):
    report = golden_report('Passed')
    for case in cases(report):
        case['leftovers'] = BUFFERS
        for values in (case['perfvalues'] or {}).values():
            values[:4] = 42, 1, -0.1, 0.1
    assert left_in_good_cases(run_of(report)) is None
