"""ReFrame's options on the command line of ``assay run``: what each may do there.

A test holds the table against ReFrame itself: an option that a new version brings has to be
decided on. docs/reframe-options.md shows it.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from assay import AssayError
from assay.running import session_extras
from assay.text import did_you_mean, similar

Takes = Literal['nothing', 'value', 'maybe']


@dataclass(frozen=True)
class Option:
    """An option of ReFrame.

    :param names: as they are written.
    :param takes: whether a value follows.
    :param decision: ``passed``: ReFrame gets it, and nothing that it does can make a bad run good;
        ``judged``: ReFrame gets it, and the verdict considers its effect; ``action``: ReFrame
        does that instead of running checks, and there is no verdict; ``ours``: Assay does it
        itself; ``refused``.
    :param why: of a refusal, the sentence; otherwise what there is to know.
    """

    names: tuple[str, ...]
    takes: Takes
    decision: Literal['passed', 'judged', 'action', 'ours', 'refused']
    why: str = ''


_UNPROVED = 'without it nothing proves that a job did what was asked'
_OWN_FOLDER = 'every run has a folder of its own in .assay/runs, so that no other run touches it'
_SHOWN = "with it all of ReFrame's output is shown"
_EARLIER = 'builds of an earlier run would stand for those of this one; choose checks by -n'

OPTIONS = [
    # Where files go
    Option(('--compress-report',), 'nothing', 'refused', 'the verdict is read from the report'),
    Option(('--dont-restage',), 'nothing', 'passed'),
    Option(('--keep-stage-files',), 'nothing', 'passed'),
    Option(('-o', '--output'), 'value', 'refused', _OWN_FOLDER),
    Option(('--perflogdir',), 'value', 'passed'),
    Option(('--prefix',), 'value', 'refused', _OWN_FOLDER),
    Option(('--report-file',), 'value', 'ours', 'a copy of the report of the run'),
    Option(('--report-junit',), 'value', 'ours', "JUnit of Assay's verdict"),
    Option(('-s', '--stage'), 'value', 'refused', _OWN_FOLDER),
    Option(('--save-log-files',), 'nothing', 'passed'),
    Option(('--timestamp',), 'maybe', 'refused', _OWN_FOLDER),
    # Which checks
    Option(('-c', '--checkpath'), 'value', 'judged', 'a missing path fails the run'),
    Option(('-R', '--recursive'), 'nothing', 'passed'),
    Option(('--cpu-only',), 'nothing', 'passed'),
    Option(('--failed',), 'nothing', 'refused', _EARLIER),
    Option(('--gpu-only',), 'nothing', 'passed'),
    Option(('--maintainer',), 'value', 'passed'),
    Option(('-n', '--name'), 'value', 'judged', 'a name that matches no case fails the run'),
    Option(('-p', '--prgenv'), 'value', 'judged', 'an MPI that matches no case fails the run'),
    Option(('-T', '--exclude-tag'), 'value', 'passed'),
    Option(('-t', '--tag'), 'value', 'passed'),
    Option(('-x', '--exclude'), 'value', 'passed'),
    Option(('-E', '--filter-expr'), 'value', 'passed'),
    # Something else than running checks
    Option(('--ci-generate',), 'value', 'action'),
    Option(('--delete-stored-sessions',), 'value', 'action'),
    Option(('--describe',), 'nothing', 'action'),
    Option(('--describe-stored-sessions',), 'value', 'action'),
    Option(('--describe-stored-testcases',), 'value', 'action'),
    Option(('--detect-host-topology',), 'maybe', 'action'),
    Option(('--dry-run',), 'nothing', 'action'),
    Option(('-h', '--help'), 'nothing', 'action'),
    Option(('-L', '--list-detailed'), 'maybe', 'action'),
    Option(('--list-stored-sessions',), 'maybe', 'action'),
    Option(('--list-stored-testcases',), 'value', 'action'),
    Option(('-l', '--list'), 'maybe', 'action'),
    Option(('--list-tags',), 'nothing', 'action'),
    Option(('--performance-compare',), 'value', 'action'),
    Option(('-r', '--run'), 'nothing', 'passed', 'is set anyway'),
    Option(('--show-config',), 'maybe', 'action'),
    Option(('-V', '--version'), 'nothing', 'action'),
    # How checks run
    Option(('--disable-hook',), 'value', 'refused', _UNPROVED),
    Option(('--duration',), 'value', 'judged', 'every repetition counts'),
    Option(('--exec-order',), 'value', 'passed'),
    Option(('--exec-policy',), 'value', 'passed'),
    Option(('--flex-alloc-nodes',), 'value', 'passed'),
    Option(('--flex-alloc-strict',), 'nothing', 'passed'),
    Option(('-J', '--job-option'), 'value', 'passed', 'the proofs of a job apply all the same'),
    Option(('--max-retries',), 'value', 'judged', 'the run names what passed at a later attempt'),
    Option(('--maxfail',), 'value', 'judged', 'what was no longer run counts as failed'),
    Option(('--mode',), 'value', 'ours', 'smoke, maintenance or acceptance'),
    Option(('--reruns',), 'value', 'judged', 'every repetition counts'),
    Option(('--restore-session',), 'maybe', 'refused', _EARLIER),
    Option(('--retries-threshold',), 'value', 'passed'),
    Option(('-S', '--setvar'), 'value', 'judged', 'a variable that no check has fails the run'),
    Option(('--skip-performance-check',), 'nothing', 'refused', 'without it nothing is measured'),
    Option(
        ('--skip-prgenv-check',),
        'nothing',
        'refused',
        'a check runs where its environment has what it needs',
    ),
    Option(('--skip-sanity-check',), 'nothing', 'refused', _UNPROVED),
    Option(
        ('--skip-system-check',),
        'nothing',
        'refused',
        'a check runs where its partition has what it needs',
    ),
    # The environment
    Option(('-M', '--map-module'), 'value', 'passed'),
    Option(('-m', '--module'), 'value', 'passed'),
    Option(('--module-mappings',), 'value', 'passed'),
    Option(('--module-path',), 'value', 'passed'),
    Option(('--non-default-craype',), 'nothing', 'passed'),
    Option(('--purge-env',), 'nothing', 'passed'),
    Option(('-u', '--unload-module'), 'value', 'passed'),
    # Tests made on the command line
    Option(('--distribute',), 'maybe', 'passed'),
    Option(
        ('-P', '--parameterize'), 'value', 'judged', 'an unknown parameter or value fails the run'
    ),
    Option(('--param-values-delim',), 'value', 'passed'),
    Option(('--repeat',), 'value', 'ours', 'the whole selection again, by --reruns'),
    # Reports and the rest
    Option(('--performance-report',), 'maybe', 'passed', _SHOWN),
    Option(
        ('--session-extras',), 'value', 'passed', '`label` and `mode` have options of their own'
    ),
    Option(('-C', '--config-file'), 'value', 'judged', 'a run whose log it moves fails'),
    Option(('--failure-stats',), 'nothing', 'passed', _SHOWN),
    Option(('--nocolor',), 'nothing', 'passed', 'is the case anyway'),
    Option(('--system',), 'value', 'ours', 'a file in config/systems'),
    Option(('--table-format',), 'value', 'passed'),
    Option(('--table-format-delim',), 'value', 'passed'),
    Option(('--term-lhs',), 'value', 'passed'),
    Option(('--term-rhs',), 'value', 'passed'),
    Option(('-v', '--verbose'), 'nothing', 'passed', _SHOWN),
    Option(('-q', '--quiet'), 'nothing', 'refused', "ReFrame's warnings are read from its output"),
    Option(('--warn-as-error',), 'nothing', 'passed'),
]


@dataclass(frozen=True)
class Given:
    """The options of a command line that are for ReFrame.

    :param names_of_options: their long names.
    :param action: the option that asks for something else than running checks, if there is one.
    :param environments: the expressions of ``-p``; an environment matches one of them.
    :param names: those of ``-n``.
    :param variables: what ``-S`` sets, as ``[CLASS.]NAME=VALUE``.
    :param parameters: what ``-P`` sets, likewise.
    :param report: where a copy of the report is to go.
    :param junit: where JUnit is to go.
    :param extra: what ``--with`` names, which is no option of ReFrame either.
    :param is_whole: whether all that is named is to be run, and not a part of it once more.
    :param page: where the report for people is to go, which is no option of ReFrame.
    :param everything: whether all figures are to be shown, which is no option of ReFrame either.
    :param jobs: what ``-J`` gives every job, as ``NAME=VALUE`` or as an option of the scheduler.
    """

    names_of_options: frozenset[str]
    action: str | None
    environments: list[str]
    names: list[str]
    variables: list[str]
    parameters: list[str]
    report: Path | None
    junit: Path | None
    jobs: list[str] = field(default_factory=list)
    page: Path | None = None
    everything: bool = False
    extra: tuple[str, ...] = ()
    is_whole: bool = True

    @property
    def files(self) -> dict[str, Path]:
        """The files that it is to write, by their options."""
        asked = {'--report-file': self.report, '--report-junit': self.junit, '--report': self.page}
        return {name: file for name, file in asked.items() if file}

    def remove_files_of_an_earlier_run(self) -> None:
        """Whatever ends this run, they are not taken for its own."""
        for stale in self.files.values():
            if stale.is_file():  # and no device, such as /dev/null
                stale.unlink()


_HOW: dict[Takes, dict[str, Any]] = {
    'nothing': {'action': 'append_const', 'const': ''},
    'value': {'action': 'append'},
    'maybe': {'action': 'append', 'nargs': '?', 'const': None},
}


_REPEATS = ('--repeat', '--reruns', '--duration', '--max-retries')
_SESSIONS = {
    '--maxfail': 'a session that ends early would count cases as failed that were never run',
    '--exec-order': 'all sessions run their cases in the same order',
}

#: What else than a run is asked of ReFrame, and what of the above it does not take.
_REFUSED = {
    'a comparison': {
        **_SESSIONS,
        **dict.fromkeys(
            ('--repeat', '--reruns', '--duration'),
            'each session measures every case once, so that sessions alternate',
        ),
        '--max-retries': 'what passes at a later attempt only would be one of several values',
        '--report-file': 'it has many sessions; `assay history` lists them',
        '--report-junit': 'it has many sessions; `assay compare-settings --json` tells all of it',
    },
    'a screening': {
        **dict.fromkeys(
            (
                *('--name', '--prgenv', '--tag', '--exclude', '--exclude-tag', '--filter-expr'),
                *('--checkpath', '--parameterize', '--distribute'),
            ),
            'a screening is one case, which --system, --environment and --fabric choose',
        ),
        **dict.fromkeys(_REPEATS, 'it is one job'),
    },
    'a tuning': {
        **_SESSIONS,
        **dict.fromkeys(_REPEATS, 'a tuning starts its jobs as often as it takes'),
        **dict.fromkeys(('--report-file', '--report-junit'), 'it has many sessions'),
        '--checkpath': 'it has a check of its own',
    },
    'a night': dict.fromkeys(
        _REPEATS, 'a night is one run, and what looks worse is measured again anyway'
    ),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise AssayError(f'{message[:1].lower()}{message[1:]}. See `assay run --help`.')


def read_for(
    purpose: Literal['a comparison', 'a screening', 'a night', 'a tuning'], arguments: list[str]
) -> Given:
    """As :func:`read_options`, for sessions that are compared or tune, a screening, or a night.

    :raises AssayError: also if an option is not for that, or nothing would be measured.
    """
    given = read_options(arguments)
    if given.action:
        raise AssayError(f'{given.action} is not for {purpose}: `assay run {given.action}`.')
    for name in given.names_of_options:
        if name in _REFUSED[purpose]:
            raise AssayError(f'{name} is not for {purpose}: {_REFUSED[purpose][name]}.')
    return given


def read_options(arguments: list[str]) -> Given:
    """Look at the options that are meant for ReFrame.

    :raises AssayError: if there is one that ReFrame has not, or that is refused; a short form of a
        long one, which ReFrame would take, is not an option.
    """
    # Abbreviated, an option would get past the table.
    parser = _Parser(prog='assay run', add_help=False, allow_abbrev=False)
    for option in OPTIONS:
        parser.add_argument(*option.names, dest=option.names[-1], **_HOW[option.takes])
    found, others = parser.parse_known_args(arguments)
    if others:
        raise AssayError(_unknown(others[0]))
    given = {name: values for name, values in vars(found).items() if values is not None}
    chosen = [option for option in OPTIONS if option.names[-1] in given]
    action = next((one.names[-1] for one in chosen if one.decision == 'action'), None)
    for option in chosen:
        if option.takes != 'nothing' and '' in given[option.names[-1]]:
            # Of an action ReFrame takes that for none, and would run checks without a verdict.
            raise AssayError(f'{option.names[-1]} has an empty value.')
        if option.decision == 'refused' and action is None:
            raise AssayError(f'{option.names[-1]} is not for a run: {option.why}.')

    if action is None:
        for value in given.get('--session-extras', []):
            session_extras.assert_ours_are_left(value)

    def path(name: str) -> Path | None:
        return Path(given[name][-1]) if name in given else None

    return Given(
        names_of_options=frozenset(given),
        action=action,
        environments=given.get('--prgenv', ['.*']),
        names=given.get('--name', []),
        parameters=given.get('--parameterize', []),
        variables=given.get('--setvar', []),
        report=path('--report-file'),
        junit=path('--report-junit'),
        jobs=given.get('--job-option', []),
    )


def repetitions(arguments: list[str], repeat: int) -> list[str]:
    """ReFrame's option with which the whole selection runs so many times, one after the other.

    Its own ``--repeat`` runs a check's repetitions in a row, so that time looks like a difference
    between checks.

    :raises AssayError: if it is no number of times, or another option says it as well.
    """
    if repeat < 1:
        raise AssayError(f'--repeat {repeat}: a run needs at least one repetition.')
    if repeat == 1:
        return []
    for other in ('--reruns', '--duration', '--max-retries'):
        if any(one == other or one.startswith(f'{other}=') for one in arguments):
            raise AssayError(f'--repeat and {other} both repeat checks: give one of them.')
    return [f'--reruns={repeat - 1}']


def assert_can_be_chosen_for(given: Given) -> None:
    """:raises AssayError: if a budget cannot choose what a command line asks of ReFrame."""
    if given.action not in (None, '--list'):
        raise AssayError(
            f'--budget and {given.action}: a budget chooses what `assay run` runs, and `-l` lists.'
        )
    for name in ('--reruns', '--duration'):
        if name in given.names_of_options:
            raise AssayError(
                f'--budget and {name} both say how long a run takes: give one of them. --repeat N '
                'is counted.'
            )


def assert_can_be_held_against(given: Given, repeat: int) -> None:
    """:raises AssayError: if what a command line asks for is no run to compare with others."""
    if given.action:
        raise AssayError(f'--against and {given.action}: there would be no run to compare.')
    for name in ('--reruns', '--duration', '--max-retries'):
        if name in given.names_of_options:
            raise AssayError(f'--against and {name}: `--repeat N` makes N runs of it.')
    if given.files and repeat > 1:
        raise AssayError(
            f'--against, --repeat {repeat} and {min(given.files)}: that file is of one run; `assay '
            'report` and `assay compare-runs --json` tell of several.'
        )


def assert_is_for_several_runs(
    given: Given, repeat: int, against: str | None, one_job: bool
) -> None:
    """:raises AssayError: if what a command line asks for is not for a run for every node."""
    if given.action:
        raise AssayError(f'--every-node and {given.action}: nothing would be run.')
    others = {'--repeat': repeat > 1, '--against': against, '--one-job': one_job, **given.files}
    for name in (name for name, is_there in others.items() if is_there):
        raise AssayError(f'--every-node and {name}: that is of one run, and these are several.')
    if any(re.match(r'-*(nodelist|w)\b', one) for one in given.jobs):
        raise AssayError(
            '--every-node and -J nodelist: each job would have all of these nodes. Name those that '
            'are not meant: -J exclude=LIST'
        )


def _unknown(argument: str) -> str:
    name = argument.partition('=')[0]
    if not name.startswith('-'):
        return f'{argument!r} is no option. To choose checks by name: -n {argument}'
    known = [name for option in OPTIONS for name in option.names]
    near = [one for one in known if one.startswith(name)][:3] or similar(name, known)
    end = f'; {did_you_mean(near)}' if near else '.'
    return f'neither Assay nor ReFrame has an option {name}{end} See `assay run --help`.'
