"""Four sessions of two settings at a time, A B B A: run, judged and stored."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence

from assay import say
from assay.comparing.sessions import (
    FOURSOME,
    ComparedSession,
    assert_something_in_common,
    session,
    without_partition,
)
from assay.results.runner import Runner
from assay.running import selection
from assay.running.reframe_options import Given
from assay.running.session import Suite
from assay.running.setting import Settings
from assay.spelling import many
from assay.text import plain

#: So many times what others disturbed is measured again at once; what they still do is left out.
AGAIN = 2


class StoppedError(Exception):
    """No more is measured: this command was told to stop, or its time was over."""


class NoGoodError(StoppedError):
    """A session was no good as a whole."""


class Foursomes:
    """What measures four sessions after four others.

    :param suite: what its sessions are started with.
    :param settings: of the two sides.
    :param options: of ReFrame, for all of them.
    :param handles: locks that are held all the while.
    """

    def __init__(
        self,
        suite: Suite,
        settings: Settings,
        given: Given,
        options: Sequence[str],
        handles: Sequence[int],
    ) -> None:
        self.settings, self.options = settings, options
        self.runner = Runner(suite, given, handles, 'compare', suite.own)
        self.number = 0

    def measure(
        self, done: list[ComparedSession], left_out: Iterable[str], signals: list[signal.Signals]
    ) -> None:
        """Measure four sessions.

        :param done: gets each session that is complete.
        :param left_out: names of cases.
        :param signals: to stop, that this command was sent; gets those that a session took.
        :raises StoppedError: if there is one, or a session is no good.
        :raises AssayError: if the first two have no case in common.
        """
        left_out = {*left_out}
        for side in FOURSOME:
            one = self._session(side, left_out, signals)
            # Those that others disturbed at once, so that the four stay in their order.
            for _ in range(AGAIN):
                if one.disturbed:
                    disturbed = {without_partition(case) for case in one.disturbed}
                    # A case of two partitions is run on both again.
                    calm = {without_partition(case) for case in one.ran} - disturbed
                    say(f'others disturbed {many(len(one.disturbed), "case")}: measured again')
                    one = one.then(self._session(side, left_out | calm, signals))
            done.append(one)
            if len(done) == 2:
                assert_something_in_common(done, self.settings)

    def _session(
        self, side: int, left_out: Iterable[str], signals: list[signal.Signals]
    ) -> ComparedSession:
        """One session, judged and stored.

        :raises NoGoodError: if more is wrong with it than that cases failed.
        :raises StoppedError: if this command was told to stop.
        """
        if signals:
            raise StoppedError(f'stopped by {signals[0].name}')
        setting = self.settings[side]
        self.number += 1
        say(f'session {self.number}: {setting}')
        without = selection.leaving_out(map(setting.named, left_out))
        own = self.runner.begin()
        options = [*setting.options, *self.options, *without]
        ended = self.runner.run(own, label(self.settings, side), options, setting.exports)
        if ended.stopped:
            signals.insert(0, ended.stopped)
            raise StoppedError(f'stopped by {ended.stopped.name}')
        ended.tell_failures()
        if ended.problems:
            raise NoGoodError(f'a session of {setting} is no good: {"; ".join(ended.problems)}')
        assert ended.run
        self.runner.release(own, not ended.verdict.problems, side)
        return session(ended.run, side, self.settings)


def label(settings: Settings, side: int) -> str:
    """By which `assay history` tells what a session was; no label has a stroke."""
    before, after = (plain(str(one).replace('/', '-')) for one in settings)
    return f'compare {before} with {after}: {(before, after)[side]}'
