"""ReFrame's log of a run: whether the run came to its end, and the warnings.

ReFrame goes on after most of what goes wrong with its checks, its options and its files, and ends
with exit code 0: a warning is all that is left of a check that could not be loaded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

from assay.text import COLOURS, plain

#: The warnings of ReFrame 4.10.4 that take nothing from a run, and why. Any other fails it.
HARMLESS = (
    # What is deprecated does what it did.
    r'RFM_\w+ is deprecated; please use .*',
    r'the `[\w-]+`( configuration)? option is deprecated; .*',
    r"configuration option '[^']*': 'variables' is deprecated; .*",
    r'/[^:]*: JSON configuration files are deprecated; .*',
    r"'tmod4' backend is deprecated; .*",
    r'both RFM_CONFIG_FILE and RFM_CONFIG_FILES are specified; the former will be ignored',
    # RFM_SYSTEM says which system this is.
    r"ignoring autodetection method 'py::[^']*' due to errors: .*",
    # The topology was found, and will be found again.
    r"could not save topology file: '[^']*': .*",
    # -E selects none of the checks that do not have what it asks for.
    r'error while evaluating expression `.*` for test case `[^`]*`: name \'\w+\' is not defined',
    # With --restore-session: ours says where the checks are.
    r'Ignoring check search (path set in|recursive option from) the report file: .*',
    # The history and the perflogs have what a server was not sent.
    r'httpjson: .*',
    r'could not initialize the httpjson handler; ignoring \.\.\.',
    # So ends what --duration asks for.
    r'run session stopped: maximum session duration exceeded',
)

_END = re.compile(r'\[ +(PASSED|FAILED|ABORTED) +\] Ran \d+/\d+ test case\(s\)')
_SKIP = re.compile(r'\[ +SKIP *\] \( *\d+/\d+\) (.*?) /\S+ @(\S+) \[(.*)\]')
_UNSET = re.compile(r"test '([^']+)': the following variables were not set: (.*)")
_IGNORED = re.compile(
    r"'([^']+)' is neither a variable nor a parameter of test '(\S+).*'; ignoring parameterization"
)
# A warning or an error, and the further lines of one that has several.
_COMPLAINT = re.compile(r'(WARNING|ERROR): (.*)')
_MORE = re.compile(r'[ |]')
# What Python prints of a record that could not be written: no handler hears of it.
_LOST = '--- Logging error ---'
_PERFLOG = 'could not log performance data'


def without_colours(log: Iterable[str]) -> list[str]:
    """The lines of ReFrame's log, or of what it printed, as they are where it uses no colours."""
    return [COLOURS.sub('', line.rstrip('\n')) for line in log]


def has_end(log: Iterable[str]) -> bool:
    """Whether a log without colours goes on to ReFrame's count of cases."""
    return any(_END.match(line) for line in log)


def skip_reasons(log: Iterable[str]) -> dict[str, str]:
    """Why cases were skipped, by ``NAME @SYSTEM:PARTITION+ENVIRONMENT``."""
    found = filter(None, map(_SKIP.match, without_colours(log)))
    return {f'{match[1]} @{match[2]}': match[3] for match in found}


def is_recorded(lines: Iterable[str]) -> bool:
    """Whether all figures came into the perflogs."""
    return not any(_LOST in line or _PERFLOG in line for line in lines)


def is_complaint(line: str, of_one: bool) -> bool:
    """Whether a line is of a warning or an error.

    A check that lacks a variable of an option is none: :func:`complaints` has what no check has.

    :param of_one: whether the line before it is.
    """
    if match := _COMPLAINT.match(line):
        return not _UNSET.fullmatch(match[2])
    return bool(of_one and _MORE.match(line))


def complaints(
    lines: Sequence[str], checks: set[str], fixtures: set[str], command: str
) -> list[str]:
    """A sentence for each kind of warnings and errors that is not known to be harmless.

    :param lines: of the log and of what ReFrame printed, without colours.
    :param checks: the classes of the checks that ran or were skipped.
    :param fixtures: those of their fixtures, which options that set variables are for as well.
    :param command: ReFrame's command line.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    without_variable: dict[str, set[str]] = {}
    without_parameter: dict[str, set[str]] = {}
    for kind, words in _messages(lines):
        if match := _UNSET.fullmatch(words):
            for variable in re.findall(r"'([^']+)'", match[2]):
                without_variable.setdefault(variable, set()).add(match[1])
        elif match := _IGNORED.fullmatch(words):
            without_parameter.setdefault(match[1], set()).add(match[2])
        elif kind != 'WARNING' or not any(re.fullmatch(one, words) for one in HARMLESS):
            key = (kind, *re.findall(r'(?<!\S)[a-z]+(?![^\s:])', words)[:4])
            alike.setdefault(key, []).append(f'ReFrame {_VERBS[kind]}: {plain(words, 600)}')
    found = []
    for first, *others in map(dict.fromkeys, alike.values()):
        found.append(f'{first} (and {len(others)} more like it)' if others else first)
    # Checks that lack what others have are left as they are.
    for name, without in without_variable.items():
        if without >= checks | fixtures or _names(command, without, name):
            found.append(f'{_who(without)} the variable {plain(name)!r} that -S sets')
    for name, without in without_parameter.items():
        if without >= checks or _names(command, without, name):
            found.append(f'{_who(without)} the parameter or variable {plain(name)!r} that -P sets')
    return found


def _names(command: str, classes: Iterable[str], name: str) -> bool:
    """Whether an option sets the variable or parameter of one of the classes by its name."""
    return any(f'{one}.{name}=' in command for one in classes)


def _who(classes: Collection[str]) -> str:
    return 'no selected check has' if len(classes) > 1 else f'{min(classes)} does not have'


_VERBS = {'WARNING': 'warned', 'ERROR': 'reported an error', _LOST: 'could not write a record'}


def _messages(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The kind and the text of each warning and error; those of several lines as one."""
    for number, line in enumerate(lines):
        if line.startswith(_LOST):
            after = lines[number + 1 : number + 200]
            raised = (one for one in after if re.match(r'\w+(Error|Exception)\b', one))
            yield _LOST, next(raised, 'no reason given')
        elif match := _COMPLAINT.match(line):
            rest = takewhile(_MORE.match, lines[number + 1 :])
            yield match[1], '\n'.join([match[2], *rest])
