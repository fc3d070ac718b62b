"""What a run could have selected, said where nothing was."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from assay import paths
from assay.config import settings
from assay.config.fabrics import load_catalogue
from assay.config.scales import SCALES
from assay.layout.layouts import LAYOUTS
from assay.running import runs

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

    from assay.running.reframe_options import Given

#: Expressions with which cases are left out. ReFrame compiles each anew for each case, and Python
#: remembers 512: with more of them a list of a thousand took minutes.
MOST_EXPRESSIONS = 256


def explain(site: _SiteConfig, environment: dict[str, str], given: Given) -> None:
    """Print what there is on a system, and what in the options is none of it.

    :param site: its configuration, loaded.
    :param environment: in which ReFrame runs.
    :param given: what was asked of ReFrame.
    """
    partitions = site['systems'][0]['partitions']
    features = {feature for one in partitions for feature in one.get('features', [])}
    there = {
        'environment': sorted({name for one in partitions for name in one.get('environs', [])}),
        'fabric': [name for name in load_catalogue().fabrics if name in features],
        'layout': list(LAYOUTS),
        'scale': [name for name in SCALES if f'scale_{name}' in features],
        'check': _checks(environment),
    }
    asked = [*_asked(given)]
    for kind, expression in dict.fromkeys(asked):
        if not _matches(expression, there[kind]):
            print(f'assay: there is no {kind} {expression!r} on this system.', file=sys.stderr)
    there['mode'] = list(settings.modes())
    for kind, names in there.items():
        print(f'{kind.capitalize()}s: {", ".join(names) or "none"}', file=sys.stderr)


def leaving_out(names: Iterable[str]) -> list[str]:
    """ReFrame's options that leave cases out, by the names that it displays."""
    # It searches names without their blanks.
    escaped = [re.escape(name.replace(' ', '')) for name in sorted(names)]
    size = -(-len(escaped) // MOST_EXPRESSIONS) or 1
    parts = (escaped[start : start + size] for start in range(0, len(escaped), size))
    return [f'--exclude=^(?:{"|".join(some)})$' for some in parts]


def _asked(given: Given) -> Iterator[tuple[str, str]]:
    """What is named in the options, as kind and expression."""
    yield from (('environment', expression) for expression in given.environments)
    for text in given.names:
        # A check's name stands before its parameters: Ring%fabric=tcp, Ring %fabric=tcp %...
        if check := re.split('[ %/@]', text)[0]:
            yield 'check', check
    for text in [*given.names, *(f'%{text}' for text in given.parameters)]:
        for kind, values in re.findall(r'%(fabric|layout|scale)=([^\s%]+)', text):
            yield from ((kind, value) for value in values.split(','))


def _matches(expression: str, names: Iterable[str]) -> bool:
    """Whether one of the names is meant. ReFrame itself refuses what is no expression."""
    try:
        return any(re.search(expression, name) for name in names)
    except re.error:
        return True


def _checks(environment: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:  # or it would begin the run's log anew
        described = subprocess.run(
            [str(paths.VENV_BIN / 'reframe'), '--describe'],
            env={**environment, runs.VARIABLE: folder},
            capture_output=True,
            text=True,
        )
    try:
        return sorted({check['@class'] for check in json.loads(described.stdout)})
    except ValueError:
        return []
