"""Reading the report of the witness from its file."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from assay import AssayError
from assay.witness.report import SCHEMA, Ended, Report


class WitnessError(AssayError):
    """A report cannot be used; the message names the file and, where one is wrong, the field."""


def read(path: Path) -> Report:
    """Read and validate a report, and what ranks that ended early left beside it.

    :raises WitnessError: if there is none, or it is not one.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise WitnessError(
            f'no witness report {path}: was the library preloaded into the program?'
        ) from None
    except OSError as error:
        raise WitnessError(f'{path}: cannot be read: {error.strerror}') from None
    try:
        report = Report.model_validate_json(text)
    except ValidationError as error:
        raise WitnessError(f'{path}: {_problems(error)}') from None
    return report.model_copy(update={'ended': _read_ended(path.with_name(f'{path.name}.ranks'))})


def _read_ended(path: Path) -> list[Ended]:
    try:
        lines = path.read_text(errors='replace').splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise WitnessError(f'{path}: cannot be read: {error.strerror}') from None
    # A line without an end is one that a rank was killed at.
    whole = [line for line in lines if line.endswith('\n') and line.strip()]
    ended = []
    for number, line in enumerate(whole, 1):
        try:
            ended.append(Ended.model_validate_json(line))
        except ValidationError as error:
            raise WitnessError(f'{path}: line {number}: {_problems(error)}') from None
    return sorted(ended, key=lambda one: one.rank)


def _problems(error: ValidationError) -> str:
    """What is wrong, with the names of the fields; the first few if it is much."""
    problems = []
    for one in error.errors(include_url=False):
        if one['type'] == 'json_invalid':
            return f'not JSON: {one["ctx"]["error"]}'
        if one['loc'] == ('schema',) and one['type'] == 'literal_error':
            return f'it has schema {one["input"]!r}, and this Assay reads schema {SCHEMA}'
        where = '.'.join(map(str, one['loc']))
        words = str(one['ctx']['error']) if one['type'] == 'value_error' else one['msg']
        problems.append(f'{where}: {words}' if where else words)
    more = f' (and {len(problems) - 3} more)' if len(problems) > 3 else ''
    return 'not a report of the witness: ' + '; '.join(problems[:3]) + more
