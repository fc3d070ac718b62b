"""Label, mode and purpose of a run, as ReFrame stores them: extra fields (``--session-extras``).

They are in the report from the first moment, and go with it to another machine. A plain ReFrame
sets them as well: ``reframe -r --session-extras label=before``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from assay import AssayError

# ReFrame divides fields at commas, and 4.10.4 searches its own JSON for the first closing brace.
_SPECIAL = re.compile(r'[%,}]')

_LEFT_OUT = 'left_out'


def options(label: str | None, mode: str, purpose: str | None = None) -> list[str]:
    """ReFrame's options that store them.

    :param purpose: None of a run that is to show how the machine is.
    """
    fields = {'mode': mode, 'label': label, 'purpose': purpose}
    return [
        f'--session-extras={name}={_SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)}'
        for name, text in fields.items()
        if text is not None
    ]


def option_for_left_out(cases: int) -> str:
    """ReFrame's option that stores how many cases a budget left out."""
    return f'--session-extras={_LEFT_OUT}={cases}'


def assert_ours_are_left(value: str) -> None:
    """Refuse fields that a user gives and Assay sets: of two ReFrame takes the last, the user's.

    :param value: of ReFrame's option.
    :raises AssayError: if it sets what :func:`options` do.
    """
    for field in value.split(','):
        name = field.partition('=')[0]
        if name in ('label', 'mode'):
            raise AssayError(f'--session-extras {field}: give it as --{name}, which stores it.')
        if name == _LEFT_OUT:
            raise AssayError(f'--session-extras {field}: only --budget leaves cases out: use that.')


def text_of(session_info: Mapping[str, object], name: str) -> str | None:
    """The label, the mode or the purpose of a stored session; None if it has none."""
    text = session_info.get(name)
    return unquote(str(text)) if text else None


def cases_left_out(session_info: Mapping[str, object]) -> int:
    """How many of the selected cases a budget left out."""
    text = text_of(session_info, _LEFT_OUT) or ''
    return int(text) if re.fullmatch('[0-9]{1,9}', text) else 0
