"""What Slurm tells of its partitions, nodes and reservations."""

from __future__ import annotations

import subprocess

from assay import AssayError

#: Seconds that Slurm has for an answer.
PATIENCE = 30

#: Slurm's words of one thing, by their names.
Record = dict[str, str]


def records(what: str) -> list[Record]:
    """All that Slurm has of a kind.

    :param what: ``partition``, ``node`` or ``reservation``.
    :raises AssayError: if it does not answer.
    """
    lines = told('scontrol', '--oneliner', 'show', what).splitlines()
    found = (dict(word.partition('=')[::2] for word in line.split()) for line in lines)
    return [record for record in found if f'{what.title()}Name' in record]


def told(*command: str) -> str:
    """What one of its commands prints.

    :raises AssayError: if the command is not there, fails, or does not answer in time.
    """
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors='replace', timeout=PATIENCE
        )
    except OSError as error:
        raise AssayError(f'{command[0]}: {error.strerror}') from None
    except subprocess.TimeoutExpired:
        raise AssayError(f'{" ".join(command)}: no answer in {PATIENCE} s') from None
    if answer.returncode:
        said = '; '.join(answer.stderr.split('\n')).strip('; ') or f'exit code {answer.returncode}'
        raise AssayError(f'{" ".join(command)}: {said}')
    return answer.stdout
