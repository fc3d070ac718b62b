"""Old words of the command line, which are taken for one more release: a notice says the new ones.

This file is all that knows them: it rewrites the words before any command sees them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

#: Commands by their old names.
_COMMANDS = {
    'diff': ['compare-runs'],
    'compare': ['compare-settings'],
    'verify': ['accept', 'verify'],
}

_NUMBER = re.compile(r'(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?')


def _same(value: str) -> str:
    return value


def _minutes(value: str) -> str:
    # A time is at least a second; 0 minutes were as good.
    return f'{max(1, round(60 * float(value)))}s' if _NUMBER.fullmatch(value) else value


def _fraction(value: str) -> str:
    if not _NUMBER.fullmatch(value):
        return value
    return _percent(f'{100 * float(value):.9f}'.rstrip('0').rstrip('.'))


def _percent(value: str) -> str:
    return f'{value}%' if _NUMBER.fullmatch(value) else value


class _Renamed(NamedTuple):
    """What became of an option.

    :param option: its new name; empty where its value is an argument now, behind all others.
    :param value: makes the new value of an old one; it leaves one that is new already.
    :param command: the command that has it now; empty for the same.
    """

    option: str
    value: Callable[[str], str] = _same
    command: str = ''


#: Options by the new name of their command, and their old one.
_OPTIONS = {
    ('compare-settings', '--a'): _Renamed('--before'),
    ('compare-settings', '--b'): _Renamed('--after'),
    ('compare-settings', '--minutes'): _Renamed('--within', _minutes),
    ('compare-settings', '--margin'): _Renamed('--margin', _fraction),
    ('compare-runs', '--margin'): _Renamed('--margin', _fraction),
    ('nightly', '--margin'): _Renamed('--margin', _fraction),
    ('baseline', '--worst'): _Renamed('--worst', _percent),
    ('init', '--wait'): _Renamed('--wait', _minutes),
    ('export', '--to'): _Renamed('--output'),
    ('witness', '--diff'): _Renamed(''),
    ('accept verify', '--key'): _Renamed('--public-key'),
    ('cluster up', '--nodes'): _Renamed('--size'),
    ('history', '--remove'): _Renamed('', command='forget'),
    ('history', '--keep'): _Renamed('--keep', command='forget'),
}


def renewed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line with new names for old ones, and a notice for each old one."""
    if not words:
        return [], []
    first, *rest = words
    if (rule := _ARGUMENTS.get(first)) and (new := rule(rest)):
        return [first, *new], [_notice(shlex.join(words), shlex.join([first, *new]))]
    if first in _COMMANDS:
        command = _COMMANDS[first]
        now, notices = _with_new_options(command, rest)
        return now, [_notice(first, ' '.join(command)), *notices]
    if rest and f'{first} {rest[0]}' in {command for command, _ in _OPTIONS}:
        return _with_new_options([first, rest[0]], rest[1:])
    return _with_new_options([first], rest)


def _with_new_options(command: list[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """As :func:`renewed`, of a command by its new name and the words behind it."""
    name = ' '.join(command)
    found: list[str] = []
    behind: list[str] = []
    notices = []
    for old, value in _pieces(name, words):
        rule = _OPTIONS.get((name, old))
        if rule is None or value is None:
            found.append(old)
            continue
        new = rule.value(value)
        if rule.command:
            command = [rule.command]
        if rule.option:
            found += [rule.option, new]
        else:
            behind.append(new)
        if (old, value) != (rule.option, new) or rule.command:
            now = shlex.join([*command, *filter(None, [rule.option]), new])
            notices.append(_notice(f'{name} {old} {shlex.quote(value)}', now))
    return [*command, *found, *behind], notices


def _triage(words: Sequence[str]) -> list[str] | None:
    """RUNS CASE, which is ``-n`` now; None for new words."""
    arguments, rest = _arguments(words)
    return [arguments[0], *rest, '-n', arguments[1]] if len(arguments) == 2 else None


def _provenance(words: Sequence[str]) -> list[str] | None:
    """CHECK, which is ``-n`` now, and two reports by options; None for new words."""
    arguments, rest = _arguments(words)
    files = dict(zip(rest[::2], rest[1::2], strict=False))
    report, before = files.get('--report'), files.get('--against')
    if not (report or before):
        return None
    runs = [before, report or 'last'] if before else [report]
    return [*filter(None, runs), *(word for one in arguments for word in ('-n', one))]


def _arguments(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments, and all options with their values behind them, which each has but flags."""
    arguments, rest = [], []
    left = iter(words)
    for word in left:
        if not word.startswith('-'):
            arguments.append(word)
            continue
        option, joined, value = word.partition('=')
        rest.append(option)
        if joined:
            rest.append(value)
        elif option not in ('--json', '--help'):
            rest += [one for one in (next(left, None),) if one is not None]
    return arguments, rest


#: Commands whose arguments became options, and what makes the new words behind their names.
_ARGUMENTS = {'triage': _triage, 'provenance': _provenance}


def _pieces(command: str, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each word; an old option with its value, which may be joined to it by ``=``."""
    left = iter(words)
    for word in left:
        if word == '--':
            yield word, None
            break
        option, joined, value = word.partition('=')
        if (command, option) in _OPTIONS:
            yield option, value if joined else next(left, None)
        else:
            yield word, None
    yield from ((word, None) for word in left)


def _notice(old: str, new: str) -> str:
    return f'`assay {old}` is `assay {new}` now; the next release does not take the old words'
