"""The grammar of the command line: an option is written and means the same in every command."""

import re
from collections import defaultdict

import pytest

from assay import AssayError
from assay.commands import main as cli
from assay.commands.options import PERCENT, TIME
from assay.quantities import duration_text, fraction_of, seconds_of
from command import COMMAND

#: Options whose help differs between commands, and why that is one meaning all the same.
OF_SEVERAL_TEXTS = {
    '--system': 'the system that is measured, looked at, or whose stored runs count',
    '--all': 'all that is left out otherwise: rows, cases or tests',
    '--mpi': 'where an MPI is; `init` also takes the name that `doctor` gives it',
    '--with': 'what is installed or packed as well',
    '--one-job': 'one job of Slurm for all cases of a run',
    '--budget': 'the time that a command has: it chooses what fits, or goes on later',
}


def commands(command, path=()):
    """Each command that runs, with its words."""
    inner = getattr(command, 'commands', {})
    if not inner:
        yield ' '.join(path), command
    for name, one in inner.items():
        yield from commands(one, (*path, name))


COMMANDS = dict(commands(COMMAND))


def options():
    """The options of all commands by name: command, and option."""
    found = defaultdict(list)
    for name, command in COMMANDS.items():
        for one in command.params:
            if one.param_type_name == 'option':
                for word in (*one.opts, *one.secondary_opts):
                    found[word].append((name, one))
    return found


OPTIONS = options()


def written(option):
    """How the value of an option is written; None of one without."""
    if option.is_flag:
        return None
    return option.metavar, option.type_descriptor.annotation, option.multiple


@pytest.mark.parametrize('word', sorted(OPTIONS))
def test_an_option_is_the_same_in_every_command(word):
    of_commands = OPTIONS[word]
    forms = {str(written(one)).replace(' | None', '') for _, one in of_commands}
    assert len(forms) == 1, f'{word}: {forms}'
    names = {tuple(one.opts) for _, one in of_commands}
    assert len(names) == 1, f'{word}: {names}'
    texts = {one.help for _, one in of_commands}
    assert len(texts) == 1 or word in OF_SEVERAL_TEXTS, f'{word}: {texts}'


def test_no_exception_is_left_over():
    for word in OF_SEVERAL_TEXTS:
        assert len({one.help for _, one in OPTIONS[word]}) > 1, word


@pytest.mark.parametrize('word', sorted(OPTIONS))
def test_a_value_has_a_name_in_capitals(word):
    for name, one in OPTIONS[word]:
        if not one.is_flag:
            assert re.fullmatch(
                r'[A-Z]+(\.html)?|NAME(=VALUE|=FILE|\[:PARTITION\])', one.metavar
            ), name


def test_times_and_percentages_are_written_one_way():
    """No option has its unit in its name or metavar, and one parser reads each."""
    for word, of_commands in OPTIONS.items():
        for name, one in of_commands:
            parser = {'TIME': TIME, 'PERCENT': PERCENT}.get(one.metavar)
            if parser and (name, word) != ('forget', '--keep'):  # which takes a day as well
                assert one.type_descriptor.parameter_info.parser is parser, f'{name} {word}'
    for word, of_commands in OPTIONS.items():
        for name, one in of_commands:
            told = f'{name} {word} {one.metavar}'
            assert not re.search(r'(?i)minutes|seconds|hours|days|fraction|\bage\b', told), told


def test_n_selects_cases_and_figure_figures():
    """Commands that pass options on have the -n of ReFrame, which selects cases too."""
    for name, one in OPTIONS['-n']:
        assert 'Only cases' in one.help, name
    for name, one in OPTIONS['--figure']:
        assert 'Only figures' in one.help, name
    for name, command in COMMANDS.items():
        passes_on = command.context_settings.get('ignore_unknown_options')
        short = [one for one in command.params if '-n' in one.opts]
        assert not (passes_on and short), name


def test_what_is_compared_is_before_and_after():
    """Two settings, runs or reports: the one before comes first."""
    for name in ('compare-runs', 'witness show', 'provenance'):
        arguments = [one for one in COMMANDS[name].params if one.param_type_name == 'argument']
        assert len(arguments) == 2 and 'AFTER' in arguments[1].metavar, name
    assert OPTIONS['--against'][0][1].metavar == 'BEFORE'


def test_what_shows_a_table_tells_it_as_json_too():
    tables = {
        *('history', 'triage', 'provenance', 'trend', 'compare-runs', 'compare-settings', 'screen'),
        *('accept plan', 'accept status', 'accept verify', 'cluster status'),
    }
    assert tables <= {name for name, _ in OPTIONS['--json']}


# How values are written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [('90s', 90), ('20m', 1200), ('1h30m', 5400), ('2m5s', 125), ('7d', 604800), ('1d1s', 86401)],
)
def test_a_time_is_read(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ('seconds', 'text'),
    [(0.2, '1s'), (60, '1m'), (5400, '1h30m'), (7200, '2h'), (86461, '1d1m1s')],
)
def test_a_time_is_told_as_it_is_read(seconds, text):
    assert duration_text(seconds) == text
    assert seconds <= seconds_of(text) < seconds + 1


@pytest.mark.parametrize(
    'text', ['', '20', 'm', '0s', '-5m', '20 m', '1.5h', '30m1h', 'nan', '1h1d', '٣m', '5m\n']
)
def test_what_is_no_time_is_told(text):
    with pytest.raises(AssayError, match='write a time such as 90s, 20m, 1h30m or 365d'):
        seconds_of(text)


def test_a_percentage_is_read():
    assert [fraction_of(text) for text in ('5%', '2.5%', '0%', '150%')] == [0.05, 0.025, 0, 1.5]


@pytest.mark.parametrize('text', ['', '5', '%', '0.05', '-5%', '5 %', 'nan%', '1e2%', '٣%', '5%\n'])
def test_what_is_no_percentage_is_told(text):
    with pytest.raises(AssayError, match='write a percentage such as 5%'):
        fraction_of(text)


@pytest.mark.parametrize(
    ('words', 'option'),
    [
        (['nightly', '--margin', '5'], '--margin'),
        (['run', '--budget', '20'], '--budget'),
        (['init', '--wait', 'long'], '--wait'),
        (['run', '--repeat', 'x'], '--repeat'),
    ],
)
def test_an_error_names_the_option(monkeypatch, words, option):
    monkeypatch.setattr('sys.argv', ['assay', *words])
    with pytest.raises(SystemExit, match=f"^assay: Invalid value for '{option}'"):
        cli.main()
