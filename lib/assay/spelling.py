"""Words of messages: how many of something, and names that nothing has, with what was meant."""

from __future__ import annotations

from collections.abc import Iterable


def many(count: int, what: str) -> str:
    """``1 core``, ``2 cores``."""
    return f'{count} {what}{"s" * (count != 1)}'


def similar(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are spelled much like it, the most similar first."""
    import difflib

    return difflib.get_close_matches(name, known, n=most)


def did_you_mean(names: Iterable[str]) -> str:
    """The question which one was meant; empty if there is none to ask for."""
    return f'did you mean {" or ".join(names)}?' if names else ''


def unknown(name: object, what: str, known: Iterable[object]) -> str:
    """That something is not known, and what may have been meant.

    :param what: the kind of thing that it would be the name of.
    """
    known = sorted(map(str, known))
    hint = did_you_mean(similar(str(name), known, most=1)) or f'there are {", ".join(known)}'
    return f'no {what} has this name; {hint}'
