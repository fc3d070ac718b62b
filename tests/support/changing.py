"""Changes of a case, a file or a journal that take arguments of their own."""

import functools


def changing(function):
    """Called with its last arguments, it gives what is called with the first: what to change."""

    def given(*own, **named):
        return functools.wraps(function)(lambda *about: function(*about, *own, **named))

    return given
