"""Each of ReFrame's options has been decided on."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import reframe.frontend.argparse
from reframe.frontend import cli

from assay import AssayError, paths
from assay.running.reframe_options import OPTIONS, read_options, repetitions

TABLE = paths.ROOT / 'docs' / 'reframe-options.md'


class CaughtError(Exception):
    pass


@pytest.fixture(scope='module')
def reframes_own():
    """ReFrame's parser, as its command makes it."""

    def catch(parser, *_):
        raise CaughtError(parser._holder)

    with (
        mock.patch.object(reframe.frontend.argparse.ArgumentParser, 'parse_args', catch),
        pytest.raises(CaughtError) as caught,
    ):
        cli.main()
    return caught.value.args[0]


def test_all_options_and_how_they_are_written(reframes_own):
    takes = {None: 'value', '?': 'maybe', 0: 'nothing'}
    theirs = {tuple(a.option_strings): takes[a.nargs] for a in reframes_own._actions}
    assert theirs == {option.names: option.takes for option in OPTIONS}


def test_every_refusal_says_why():
    assert all(option.why for option in OPTIONS if option.decision in ('refused', 'ours'))


def test_the_table_in_the_docs_is_this_one():
    lines = TABLE.read_text().splitlines()
    shown = [line for line in lines if line.startswith('| `-')]
    assert shown == [
        f'| {", ".join(f"`{name}`" for name in one.names)} | {one.decision} | {one.why} |'
        for one in OPTIONS
    ]


@pytest.mark.parametrize('option', [o.names[-1] for o in OPTIONS if o.decision == 'refused'])
def test_refusals(option):
    takes = next(one.takes for one in OPTIONS if option in one.names)
    with pytest.raises(AssayError, match=f'^{option} is not for a run: .*'):
        read_options([f'{option}=x'] if takes == 'value' else [option])


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--skip-sanity'], 'no.* option --skip-sanity; did you mean --skip-sanity-check?'),
        (['--skip-perf'], 'did you mean --skip-performance-check?'),
        (['--max-retires=2'], 'did you mean --max-retries'),
        (['Ring'], "'Ring' is no option. To choose checks by name: -n Ring"),
        (['-n'], 'expected one argument'),
        (['-n', '-v'], 'expected one argument'),
        (['--verbose=3'], 'ignored explicit argument'),
        (['-r', '--ci-generate='], '--ci-generate has an empty value'),
        (['-r', '--skip-sanity-check', '--detect-host-topology='], 'has an empty value'),
        (['--session-extras=a=1,label=b'], '--session-extras label=b: give it as --label'),
        (['--session-extras', 'mode=x'], '--session-extras mode=x: give it as --mode'),
        (['--report-junit', ''], '--report-junit has an empty value'),
    ],
)
def test_what_is_no_option(arguments, words):
    with pytest.raises(AssayError, match=words):
        read_options(arguments)


@pytest.mark.parametrize(
    'arguments', [['-l'], ['-L'], ['-lC'], ['--list=C'], ['-vl'], ['--dry-run'], ['--list-tags']]
)
def test_what_is_no_run(arguments):
    assert read_options(arguments).action


def test_what_is_no_run_may_have_what_a_run_may_not():
    assert read_options(['--dry-run', '--stage=there']).action == '--dry-run'


@pytest.mark.parametrize(
    'arguments',
    [
        ['-n', '-'],
        ['--session-extras=labels=a,b=mode'],
        ['--repeat=3'],
        ['--performance-report'],
        ['-vv'],
        ['-S', 'a=-l'],
        ['-n=-l'],
    ],
)
def test_what_is_a_run(arguments):
    assert read_options(arguments).action is None


def test_what_assay_does_itself():
    given = read_options(
        ['-p', '^mpich$', '--report-junit', 'a/j.xml', '--report-file=r.json', '-p', 'x']
    )
    assert given.environments == ['^mpich$', 'x']
    assert (str(given.junit), str(given.report)) == ('a/j.xml', 'r.json')
    assert read_options(['-S', 'a=1', '-Sb.c=2', '--setvar=d=e']).variables == [
        'a=1',
        'b.c=2',
        'd=e',
    ]
    assert read_options(['-P', 'a=1,2']).parameters == ['a=1,2']
    assert read_options([]).environments == ['.*']


def test_repetitions_are_of_the_whole_selection():
    assert repetitions(['-n', 'Ring'], 1) == []
    assert repetitions(['-n', 'Ring'], 5) == ['--reruns=4']


TOY = """
import reframe as rfm
from reframe.core.builtins import parameter, run_before, sanity_function

@rfm.simple_test
class Toy(rfm.RunOnlyRegressionTest):
    number = parameter([1, 2, 3])
    valid_systems = valid_prog_environs = ['*']
    executable = 'true'

    @run_before('run')
    def noted(self):
        self.executable_opts = [f'&& echo {self.number} >>{ORDER}']

    @sanity_function
    def validate(self):
        return True
"""


def test_repetitions_are_spread_over_the_whole_run(tmp_path):
    """All cases and then all again: a spell of the machine meets no case in all its repetitions."""
    order = tmp_path / 'order'
    (tmp_path / 'toy.py').write_text(TOY.replace('{ORDER}', str(order)))
    program = Path(sys.executable).with_name('reframe')
    own = {'RFM_PREFIX': str(tmp_path), 'RFM_PERFLOG_DIR': str(tmp_path / 'perflogs')}
    subprocess.run(
        [program, '-c', tmp_path / 'toy.py', '--exec-policy=serial', '-r', *repetitions([], 3)],
        env={**{name: one for name, one in os.environ.items() if 'RFM_' not in name}, **own},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    ran = order.read_text().split()
    assert sorted(ran[:3]) == ['1', '2', '3'] and ran == 3 * ran[:3]


@pytest.mark.parametrize(
    ('arguments', 'times', 'sentence'),
    [
        ([], 0, r'--repeat 0: a run needs at least one repetition'),
        ([], -3, r'--repeat -3: a run needs'),
        (['--reruns=2'], 2, r'--repeat and --reruns both repeat checks'),
        (['--max-retries', '2'], 2, r'--repeat and --max-retries both'),
    ],
)
def test_repetitions_that_make_no_sense(arguments, times, sentence):
    with pytest.raises(AssayError, match=sentence):
        repetitions(arguments, times)
