"""ReFrame's JSON report, read into a run: no other file knows how ReFrame writes it.

Fields may be missing that other checks or older versions of ours do not write, or that ReFrame
leaves out of a case without a job. Any other defect fails; the message names file and field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.results.cases import (
    PARAMETERS,
    Case,
    CaseFigure,
    CaseName,
    Facts,
    Files,
    Job,
    Leftovers,
    Run,
    Seconds,
    reference_and_bounds,
)
from assay.results.provenance import facts_from_variables, is_of_fact
from assay.running.session_extras import cases_left_out, text_of
from assay.text import plain

#: An object of the report.
Record = Mapping[str, Any]

# What ReFrame writes of a variable that nothing has set.
_UNDEFINED = '<undefined>'


class _MalformedError(Exception):
    """A field is not as ReFrame writes it; the message begins with the field."""


def read_reframe_report(path: Path) -> Run:
    """The run of a report.

    :raises AssayError: if it cannot be read, or is none.
    """
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: not a report of ReFrame: {error}') from error
    return as_run(text, path)


def as_run(text: str | bytes, where: object) -> Run:
    """The run of a report's text.

    :param where: it is from, for the message.
    :raises AssayError: if it is none.
    """
    try:
        report = json.loads(text)
        info, rounds = report['session_info'], report['runs']
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        kind = type(error).__name__
        raise AssayError(f'{where}: not a report of ReFrame: {kind}: {error}') from error
    try:
        return _run(_object(info, 'session_info'), _list(rounds, 'runs'))
    except _MalformedError as error:
        raise AssayError(f'{where}: not as ReFrame writes it: {error}') from None


def case_of(record: Any) -> Case:
    """A case of a report.

    :raises AssayError: if it is none.
    """
    try:
        return _case(_object(record, 'the case'))
    except _MalformedError as error:
        raise AssayError(f'not as ReFrame writes it: {error}') from None


def name_of(record: Any) -> CaseName:
    """The name of a case, which need not have anything else.

    :raises AssayError: if it has none.
    """
    try:
        return CaseName(**_name(_object(record, 'the case')))
    except _MalformedError as error:
        raise AssayError(f'not as ReFrame writes it: {error}') from None


def _run(info: Record, rounds: Sequence[Any]) -> Run:
    cases = tuple(_round(one, f'runs[{number}]') for number, one in enumerate(rounds))
    label, mode, purpose = (text_of(info, name) for name in ('label', 'mode', 'purpose'))
    try:
        _assert_utf8(f'{label}{mode}{purpose}', 'label, mode or purpose')
        return Run(
            uuid=_text(info, 'uuid'),
            begun=_time(info, 'time_start_unix'),
            ended=_time(info, 'time_end_unix'),
            rounds=cases,
            seconds=_seconds(info.get('time_elapsed')),
            command=_words(info, 'cmdline'),
            hostname=_words(info, 'hostname'),
            user=_words(info, 'user'),
            version=_words(info, 'version'),
            logs=_texts(info, 'log_files'),
            label=label,
            mode=mode,
            purpose=purpose,
            budget_left_out=cases_left_out(info),
        )
    except _MalformedError as error:
        raise _MalformedError(f'session_info: {error}') from None


def _round(record: Any, where: str) -> tuple[Case, ...]:
    found = []
    cases = _list(_object(record, where).get('testcases'), f'{where}.testcases')
    for number, case in enumerate(cases):
        try:
            found.append(_case(_object(case, 'the case')))
        except _MalformedError as error:
            raise _MalformedError(f'{where}.testcases[{number}]: {error}') from None
    return tuple(found)


def _name(record: Record) -> dict[str, Any]:
    name = {
        'display_name': _text(record, 'display_name'),
        'system': _text(record, 'system'),
        'partition': _text(record, 'partition'),
        'environment': _text(record, 'environ'),
        'is_fixture': _truth(record, 'fixture'),
    }
    for parameter in PARAMETERS:
        name[parameter] = _shown(record, parameter)
    return name


def _case(record: Record) -> Case:
    return Case(
        **_name(record),
        result=_result(record),
        figures=_figures(record),
        fail_phase=_text(record, 'fail_phase', ''),
        fail_reason=_words(record, 'fail_reason'),
        place=_place(record),
        run_index=_count(record, 'run_index') or 0,
        job=_job(record),
        files=Files(
            stage=_words(record, 'stagedir'),
            output=_words(record, 'outputdir'),
            stdout=_words(record, 'job_stdout'),
            stderr=_words(record, 'job_stderr'),
            build_stdout=_words(record, 'build_stdout'),
            build_stderr=_words(record, 'build_stderr'),
            kept=_texts(record, 'keep_files'),
        ),
        seconds=Seconds(*[_seconds(record.get(name)) for name in _TIMES]),
        implementation=_shown(record, 'implementation'),
        no_evidence=_words(record, 'no_evidence'),
        replaced=_texts(record, 'replaced'),
        disturbances=_texts(record, 'disturbances'),
        taken_by_others=_table_texts(record, 'taken_by_others'),
        leftovers=Leftovers(
            variables=_texts(record, 'leftovers'),
            in_files=_texts(record, 'leftovers_in_files'),
            are_seen=_given(record, 'leftovers_seen') is True,
            are_unsure=_given(record, 'leftovers_unsure') is True,
            hosts_differ_in=_texts(record, 'hosts_differ_in'),
        ),
        finding=_words(record, 'finding'),
        facts=_facts(record),
        hash=_shown(record, 'hashcode'),
        unique_name=_text(record, 'unique_name', ''),
        needs=_needs(record),
        environments=_texts(record, 'valid_prog_environs'),
    )


def _result(record: Record) -> str:
    """ReFrame's word; one for all that had not ended when the session was stopped.

    ReFrame ends them itself if it is stopped by a signal, and not if it stops by an error.
    """
    result = _text(record, 'result')
    return 'abort' if result == '<unknown>' else result


_TIMES = [f'time_{name}' for name in Seconds.__slots__]


def _figures(record: Record) -> tuple[CaseFigure, ...]:
    if 'perfvalues' not in record:
        raise _MalformedError('perfvalues is missing')
    directions, slowest = _mapping(record, 'directions'), _mapping(record, 'slowest_ranks')
    headlines = _texts(record, 'headlines')
    found = []
    for key, values in _mapping(record, 'perfvalues').items():
        name = key.rpartition(':')[2]
        try:
            if len(_list(values, 'it')) != 6:
                raise _MalformedError('it has not six values')
            value, reference, lower, upper, unit, result = values
            found.append(
                CaseFigure(
                    _as_text(name),
                    _number(value),
                    *reference_and_bounds(_number(reference), _number(lower), _number(upper)),
                    _as_text(unit),
                    _as_text(result) or None,
                    _as_text(directions.get(name)) or None,
                    name in headlines,
                    _as_text(slowest.get(name)),
                )
            )
        except _MalformedError as error:
            raise _MalformedError(f'perfvalues.{plain(key, 100)}: {error}') from None
    return tuple(found)


def _job(record: Record) -> Job:
    nodes = _given(record, 'job_nodelist') or ()
    ended = _given(record, 'job_completion_time_unix')
    return Job(
        id=_shown(record, 'jobid'),
        nodes=(nodes,) if isinstance(nodes, str) else _table_texts(record, 'job_nodelist'),
        ended=_time(record, 'job_completion_time_unix') if ended is not None else None,
        exit_code=_count(record, 'job_exitcode'),
        ranks=_count(record, 'num_tasks'),
        ranks_per_node=_count(record, 'num_tasks_per_node'),
        executable=_shown(record, 'executable'),
        runs_script=_given(record, 'runs_script') is True,
    )


def _facts(record: Record) -> Facts:
    known = {}
    for name in _names_of_facts(tuple(record)):
        value = record[name]
        is_unknown = value == _UNDEFINED or (name.startswith('ran_on_') and not value)
        known[name] = '' if is_unknown else _text(record, name)
    try:
        return facts_from_variables(known)
    except ValueError as error:
        raise _MalformedError(f'ran_variables or ran_settings: {error}') from None


# All cases of a check have the same.
@lru_cache(maxsize=256)
def _names_of_facts(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(is_of_fact, names))


def _place(record: Record) -> tuple[int, int] | None:
    """Run and place within it, which the identifier of a case ends with."""
    found = re.fullmatch(r'[^:]*:([0-9]{1,9}):([0-9]{1,9})', _text(record, 'uuid', ''))
    return (int(found[1]), int(found[2])) if found else None


def _needs(record: Record) -> tuple[tuple[str, ...], ...]:
    name = 'dependencies_actual'
    found = [_list(one, name) for one in _list(_given(record, name) or [], name)]
    return tuple(tuple(map(_as_text, one)) for one in found)


def _given(record: Record, name: str) -> Any:
    """A value of any kind; None if there is none."""
    value = record.get(name)
    return None if value == _UNDEFINED else value


def _text(record: Record, name: str, default: str | None = None) -> str:
    """A text that tables can hold.

    :param default: as of :func:`_words`.
    """
    text = _words(record, name, default)
    _assert_utf8(text, name)
    return text


def _words(record: Record, name: str, default: str | None = '') -> str:
    """A text of others, which may have any bytes.

    :param default: where there is none; None if there has to be one.
    """
    value = record.get(name)
    if isinstance(value, str) and value != _UNDEFINED:
        return value
    if default is not None and value in (None, _UNDEFINED):
        return default
    raise _MalformedError(f'{name} is missing' if value is None else f'{name} is no text')


def _as_text(value: Any) -> str:
    """Check that a figure's value is text, and return it; empty for none."""
    if value is None:
        return ''
    if not isinstance(value, str):
        raise _MalformedError('there is no text where one should be')
    if not value.isascii():
        _assert_utf8(value, 'a text')
    return value


def _shown(record: Record, name: str) -> str:
    """A field as text, which a site's own check may give as text or number; empty for none."""
    value = _given(record, name)
    text = '' if value is None else str(value)
    _assert_utf8(text, name)
    return text


def _texts(record: Record, name: str) -> tuple[str, ...]:
    """Texts; none where there is no list."""
    if not (texts := _given(record, name)):
        return ()
    if not all(isinstance(text, str) for text in _list(texts, name)):
        raise _MalformedError(f'{name} has something that is no text')
    return tuple(texts)


def _table_texts(record: Record, name: str) -> tuple[str, ...]:
    """Texts that tables can hold."""
    found = _texts(record, name)
    _assert_utf8(''.join(found), name)
    return found


def _count(record: Record, name: str) -> int | None:
    value = _given(record, name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _MalformedError(f'{name} is no whole number')


def _truth(record: Record, name: str) -> bool:
    value = record.get(name)
    if isinstance(value, bool):
        return value
    problem = 'is missing' if value is None else 'is neither true nor false'
    raise _MalformedError(f'{name} {problem}')


def _number(value: Any) -> float | None:
    if value is None or type(value) is float:  # as most are
        return value
    try:
        if isinstance(value, int):
            return float(value)
    except OverflowError:
        pass
    raise _MalformedError('there is no number where one should be')


def _seconds(value: Any) -> float | None:
    """NaN for what is no time: the run counts all the same."""
    try:
        return _number(value)
    except _MalformedError:
        return math.nan


def _time(record: Record, name: str) -> datetime:
    value = record.get(name)
    if value is None:
        raise _MalformedError(f'{name} is missing')
    try:
        return datetime.fromtimestamp(value, timezone.utc)
    except (OSError, OverflowError, TypeError, ValueError):
        raise _MalformedError(f'{name} is no time') from None


def _object(value: Any, field: str) -> Record:
    if isinstance(value, dict):
        return value
    raise _MalformedError(f'{field} is missing' if value is None else f'{field} is no object')


def _mapping(record: Record, name: str) -> Record:
    """An object by names; empty where there is none."""
    return _object(_given(record, name) or {}, name)


def _list(value: Any, field: str) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    raise _MalformedError(f'{field} is missing' if value is None else f'{field} is no list')


def _assert_utf8(text: str, field: str) -> None:
    """Polars takes nothing else, and would tell neither the run nor the case."""
    try:
        text.encode()
    except UnicodeError:
        raise _MalformedError(f'{field} cannot be written as UTF-8') from None
