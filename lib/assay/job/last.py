"""Keeping what is large, and asked for several times in a row, only as long as that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class kept_of_last:  # noqa: N801
    """A property whose value is kept of that one object which was asked last.

    Unlike with functools.cached_property, a thousand objects keep no more than one.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._of: object = None
        self._value: Any = None
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self._of is not instance:
            self._of = self._value = None  # the old one goes before the new one is made
            self._value = self._function(instance)
            self._of = instance
        return self._value
