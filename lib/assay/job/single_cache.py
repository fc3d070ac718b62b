"""A cache of one value: for what is large, and asked for several times in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar('Value')


class single_cached_property(Generic[Value]):  # noqa: N801
    """A cached property with room for one value: that of the object that was asked last.

    With functools.cached_property a thousand objects would keep a value each.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self._held: tuple[object, Value] | None = None
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> single_cached_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(
        self, instance: object, owner: type | None = None
    ) -> single_cached_property[Value] | Value:
        if instance is None:
            return self
        if self._held is None or self._held[0] is not instance:
            self._held = None  # the old one goes before the new one is made
            self._held = instance, self._function(instance)
        return self._held[1]
