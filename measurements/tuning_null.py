"""`assay tune` where nothing can be gained: Open MPI's default under four names.

    .venv/bin/python measurements/tuning_null.py --runs 5 -p '^openmpi-system$' -n '%fabric=shm'

The choice 0 of Open MPI is its default. It is offered four times for each operation, and takes the
place of all algorithms: a rule that is proved is a false alarm. Other options are those of
`assay tune`. What is printed is the first line of each tuning.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from dataclasses import replace

from assay.commands import main as cli
from assay.mpis import FAMILIES
from assay.mpis.algorithms import Algorithm, ControlVariables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--runs', type=int, default=5)
    asked, options = parser.parse_known_args()
    family = FAMILIES['openmpi']
    words = family.algorithms
    assert words

    def offered(variables: ControlVariables, answers: str) -> list[Algorithm]:
        real = words.offered(variables, answers)
        first = {one.operation: one for one in reversed(real)}
        return [
            Algorithm(operation, f'default {number}', {**one.env, last(one): '0'})
            for operation, one in first.items()
            for number in range(1, 5)
        ]

    def last(one: Algorithm) -> str:
        """The variable that names the algorithm, behind the one that switches it on."""
        return [*one.env][-1]

    FAMILIES['openmpi'] = family.model_copy(update={'algorithms': replace(words, offered=offered)})
    for number in range(asked.runs):
        told = io.StringIO()
        sys.argv = ['assay', 'tune', *options]
        with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
            cli.main()
        print(f'{number + 1}: {told.getvalue().partition(chr(10))[0]}', flush=True)


if __name__ == '__main__':
    main()
