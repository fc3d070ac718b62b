"""A cache of one value: for what is large, and asked for several times in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class single_cached_property:  # noqa: N801
    """A cached property with room for one value: that of the object that was asked last.

    With functools.cached_property a thousand objects would keep a value each.
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
