"""What a run could have selected, said where nothing was."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from assay import paths, settings
from assay.fabrics import load_catalogue
from assay.layouts import LAYOUTS
from assay.scales import SCALES

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def _options(arguments: list[str]) -> argparse.Namespace:
    """Those of ReFrame's options that select."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument('-p', '--prgenv', action='append', default=[])
    options.add_argument('-n', '--name', action='append', default=[])
    options.add_argument('-P', '--parameterize', action='append', default=[])
    return options.parse_known_args(arguments)[0]


def explain(site: _SiteConfig, environment: dict[str, str], arguments: list[str]) -> None:
    """Print what there is on a system, and what in the options is none of it.

    :param site: its configuration, loaded.
    :param environment: in which ReFrame runs.
    :param arguments: those for ReFrame.
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
    asked = [*_asked(_options(arguments))]
    for kind, expression in dict.fromkeys(asked):
        if not _matches(expression, there[kind]):
            print(f'assay: there is no {kind} {expression!r} on this system.', file=sys.stderr)
    there['mode'] = list(settings.modes())
    for kind, names in there.items():
        print(f'{kind.capitalize()}s: {", ".join(names) or "none"}', file=sys.stderr)


def _asked(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """What is named in the options, as kind and expression."""
    yield from (('environment', expression) for expression in options.prgenv)
    for text in options.name:
        # A check's name stands before its parameters: Ring%fabric=tcp, Ring %fabric=tcp %...
        if check := re.split('[ %/@]', text)[0]:
            yield 'check', check
    for text in [*options.name, *(f'%{text}' for text in options.parameterize)]:
        for kind, values in re.findall(r'%(fabric|layout|scale)=([^\s%]+)', text):
            yield from ((kind, value) for value in values.split(','))


def _matches(expression: str, names: Iterable[str]) -> bool:
    """Whether one of the names is meant. ReFrame itself refuses what is no expression."""
    try:
        return any(re.search(expression, name) for name in names)
    except re.error:
        return True


def _checks(environment: dict[str, str]) -> list[str]:
    described = subprocess.run(
        [str(paths.VENV_BIN / 'reframe'), '--describe'],
        env=environment,
        capture_output=True,
        text=True,
    )
    try:
        return sorted({check['@class'] for check in json.loads(described.stdout)})
    except ValueError:
        return []
