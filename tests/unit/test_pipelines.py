"""The pipelines in ``ci``: what their shell does, with an assay that only notes its arguments."""

import re
import shlex
import signal
import subprocess
import time

import pytest
import yaml

from assay import paths
from command import COMMAND

CI = paths.ROOT / 'ci'
NOTIFY = 'mail -s "$ASSAY_SUBJECT" hpc@example.org'


@pytest.fixture
def home(tmp_path):
    """A home folder with a checkout of a branch and a tag, and what its assay says."""
    remote, checkout = tmp_path / 'remote', tmp_path / 'assay'
    remote.mkdir()
    (remote / 'assay').write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" >"$HOME/arguments"\n'
        'echo "NIGHT PASSED: it"; cat "$HOME/said" 2>/dev/null; exit "$(cat "$HOME/code")"\n'
    )
    (remote / 'assay').chmod(0o755)
    git = ['git', '-C', str(remote), '-c', 'user.name=a', '-c', 'user.email=a@example.org']
    subprocess.run([*git, 'init', '--quiet', '--initial-branch=main'], check=True)
    subprocess.run([*git, 'add', '.'], check=True)
    subprocess.run([*git, 'commit', '--quiet', '--message=it'], check=True)
    subprocess.run(['git', 'clone', '--quiet', str(remote), str(checkout)], check=True)
    subprocess.run([*git, 'tag', 'v1'], check=True)
    (tmp_path / 'code').write_text('0')
    return tmp_path


def shell(home, script, environment, name='bash'):
    """Run a script as a pipeline does."""
    ended = subprocess.run(
        [name, '-e', '-c', script],
        cwd=home,
        env={'PATH': '/usr/bin:/bin', 'HOME': str(home), **environment},
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


def arguments(home):
    return (home / 'arguments').read_text().splitlines()


def gitlab(name):
    pipeline = yaml.safe_load((CI / name).read_text())
    # As GitLab Runner 18 has it: bash makes 1 of the code of a command that fails at its end.
    script = ': | eval ' + shlex.quote('\n'.join(pipeline['assay']['script']) + '\n')
    return script, {key: str(value) for key, value in pipeline['variables'].items()} | {
        'CI_PROJECT_DIR': '/project'
    }


def github():
    workflow = yaml.safe_load((CI / 'github.yml').read_text())
    steps = [step['run'] for step in workflow['jobs']['night']['steps'] if 'run' in step]
    # Each in a shell of its own.
    return '\n'.join(f'({step})' for step in steps), workflow['env']


def jenkins():
    text = (CI / 'Jenkinsfile').read_text()
    steps = re.findall(r"'''(.*?)'''", text, re.DOTALL)
    environment = dict(re.findall(r"^ +(NIGHT_\w+) = '(.*?)'", text, re.MULTILINE))
    # Groovy's own escape: a backslash at the end of a line is none of the shell's there.
    return '\n'.join(f'({step})' for step in steps), environment


PIPELINES = {
    'gitlab.yml': lambda: gitlab('gitlab.yml'),
    'gitlab-jacamar.yml': lambda: gitlab('gitlab-jacamar.yml'),
    'github.yml': github,
    'Jenkinsfile': jenkins,
}


@pytest.mark.parametrize('name', PIPELINES)
def test_a_night_gets_what_the_pipeline_says(home, name):
    script, environment = PIPELINES[name]()
    code, said = shell(home, script, {**environment, 'NIGHT_NOTIFY': NOTIFY})
    assert code == 0, said
    options = arguments(home)
    assert options[:5] == ['nightly', '--system', 'mycluster', '--mode', 'maintenance']
    assert options[options.index('--notify') + 1] == NOTIFY
    assert [one.partition('=')[0] for one in options[-2:]] == ['--report-junit', '--report-file']
    shell(home, script, {**environment, 'NIGHT_NOTIFY': ''})
    assert '--notify' not in arguments(home)


@pytest.mark.parametrize('name', PIPELINES)
def test_the_suite_is_of_the_version_that_is_asked_for(home, name):
    script, environment = PIPELINES[name]()
    for version in ('v1', 'main'):
        code, said = shell(home, script, {**environment, 'NIGHT_VERSION': version})
        assert code == 0, said
    (home / 'arguments').unlink()
    code, said = shell(home, script, {**environment, 'NIGHT_VERSION': 'v2'})
    assert code != 0 and 'v2' in said and not (home / 'arguments').exists()


@pytest.mark.parametrize('name', PIPELINES)
def test_a_branch_that_has_become_a_tag_is_the_tag(home, name):
    script, environment = PIPELINES[name]()
    git = ['git', '-C', str(home / 'remote'), '-c', 'user.name=a', '-c', 'user.email=a@example.org']
    subprocess.run([*git, 'branch', 'v2'], check=True)
    assert shell(home, script, {**environment, 'NIGHT_VERSION': 'v2'})[0] == 0
    subprocess.run([*git, 'branch', '--quiet', '--delete', 'v2'], check=True)
    subprocess.run([*git, 'commit', '--quiet', '--allow-empty', '--message=new'], check=True)
    assert shell(home, script, {**environment, 'NIGHT_VERSION': 'v2'})[0]
    subprocess.run([*git, 'tag', 'v2'], check=True)
    assert shell(home, script, {**environment, 'NIGHT_VERSION': 'v2'})[0] == 0
    heads = [
        subprocess.run(['git', '-C', str(home / one), 'rev-parse', 'HEAD'], capture_output=True)
        for one in ('remote', 'assay')
    ]
    assert heads[0].stdout == heads[1].stdout


@pytest.mark.parametrize('name', PIPELINES)
def test_files_of_the_night_before_are_not_published(home, name):
    script, environment = PIPELINES[name]()
    for file in ('junit.xml', 'report.json'):
        (home / file).touch()
    assert shell(home, script, {**environment, 'NIGHT_VERSION': 'v3'})[0]
    assert not (home / 'junit.xml').exists() and not (home / 'report.json').exists()


@pytest.mark.parametrize(('code', 'ends'), [(0, 0), (1, 1), (3, 0), (75, 0)])
def test_what_is_no_failure_of_github(home, code, ends):
    script, environment = github()
    (home / 'code').write_text(str(code))
    ended, said = shell(home, script, environment)
    assert ended == ends
    assert ('::warning::' in said) == (code in (3, 75))


def test_a_night_that_github_cancels_has_stopped_its_jobs(home):
    """Its runner tells only the shell, and kills all that is left once that has ended."""
    (home / 'assay' / 'assay').write_text(
        '#!/bin/sh\ntrap "sleep 0.2; touch $HOME/stopped; exit 143" TERM\ntouch "$HOME/begun"\n'
        'while :; do sleep 0.05; done\n'
    )
    workflow = yaml.safe_load((CI / 'github.yml').read_text())
    (script,) = (
        step['run'] for step in workflow['jobs']['night']['steps'] if step['name'] == 'Run a night'
    )
    environment = {'PATH': '/usr/bin:/bin', 'HOME': str(home), **workflow['env']}
    with subprocess.Popen(['bash', '-e', '-c', script], cwd=home, env=environment) as night:
        while not (home / 'begun').exists():
            assert night.poll() is None
            time.sleep(0.01)
        for one in (signal.SIGINT, signal.SIGTERM):
            night.send_signal(one)
        assert night.wait() == 143
    assert (home / 'stopped').exists()


@pytest.mark.parametrize('name', ['gitlab.yml', 'gitlab-jacamar.yml'])
def test_what_is_no_failure_of_gitlab(home, name):
    script, environment = gitlab(name)
    for code in (75, 3, 1, 0):
        (home / 'code').write_text(str(code))
        assert shell(home, script, environment)[0] == code
    pipeline = yaml.safe_load((CI / name).read_text())
    assert pipeline['assay']['allow_failure'] == {'exit_codes': [3, 75]}


@pytest.mark.parametrize(
    ('code', 'said', 'mailed'),
    [
        (0, '', ''),
        (1, '', ''),
        (3, '', ''),
        (75, '', ''),
        (1, 'assay: nobody was told: no server', 'assay: nobody was told: no server\n'),
    ],
)
def test_what_cron_mails(home, code, said, mailed):
    assert cron(home, code, said) == mailed


def test_cron_mails_what_nobody_was_told_of(home):
    text = (home / 'assay' / 'assay').read_text().replace('NIGHT PASSED: it', 'it broke')
    (home / 'assay' / 'assay').write_text(text)
    assert cron(home, 1) == 'it broke\n'


def cron(home, code, said=''):
    """What the line of a night prints."""
    (home / 'code').write_text(str(code))
    (home / 'said').write_text(said)
    (line,) = re.findall(r'^30 1 \* \* \* (.*)$', (CI / 'crontab').read_text(), re.MULTILINE)
    assert '%' not in line  # which cron takes for the end of a line
    told = shell(home, line, {}, 'sh')[1]
    assert arguments(home)[:3] == ['nightly', '--system', 'mycluster']
    return told


def test_every_option_is_one():
    known = {
        name for parameter in COMMAND.commands['nightly'].params for name in parameter.opts
    } | {'--report-junit', '--report-file'}
    files = [path for path in CI.rglob('*') if path.is_file()]
    assert len(files) == 7
    for path in files:
        if calls := re.findall(r'assay nightly (.*(?:\\\n.*)*)', path.read_text()):
            used = {option for call in calls for option in re.findall(r'(--[a-z-]+)', call)}
            assert used <= known, path
