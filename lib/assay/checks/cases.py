"""Which cases of a check there are: where each can run, and the modes that it is in; what each
waits for before its job, and how long that may take.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import takewhile

import reframe.core.runtime as rt
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import ReframeError, ReframeFatalError
from reframe.core.pipeline import RegressionTestPlugin
from reframe.utility.typecheck import Duration

from assay import say
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.config.scales import PARTS, PREFIX, SCALES, is_at_most, scales_in
from assay.layout.layouts import layout_of
from assay.running import runs, turn

_CATALOGUE = load_catalogue()


def offers(feature: str) -> bool:
    """Whether a partition of this system has the feature. Yes where ReFrame has no system yet."""
    try:
        partitions = rt.runtime().system.partitions
    except ReframeFatalError:
        return True
    return any(feature in partition.features for partition in partitions)


def offered_features(names: Iterable[str]) -> list[str]:
    """The names that a partition of this system has as a feature.

    A check that no partition can run costs as much to make as one that runs. The first name where
    the system has none: a parameter needs a value.
    """
    names = list(names)
    return [name for name in names if offers(name)] or names[:1]


def scales(most: int | None = None) -> list[str]:
    """The scales of at most so many nodes that a partition of this system offers.

    All usual ones where ReFrame has no system yet; one node where the system has none.
    """
    try:
        partitions = rt.runtime().system.partitions
    except ReframeFatalError:
        there = [*SCALES, *PARTS]
    else:
        there = scales_in({feature for one in partitions for feature in one.features})
    return [name for name in there if most is None or is_at_most(name, most)] or ['1_node']


class HasCases(RegressionTestPlugin):
    """A check with a case for each fabric, layout and scale."""

    fabric: str = parameter(offered_features(_CATALOGUE.fabrics), type=str, loggable=True)
    layout: str = parameter(['packed'], type=str, loggable=True)
    scale: str = parameter(['1_node'], type=str, loggable=True)

    @run_after('init')
    def select_where_to_run(self) -> None:
        is_one = is_at_most(self.scale, 1)
        if self.fabric == DEFAULT:
            names = _CATALOGUE.best_first(not is_one)
            self.valid_systems = [f'+{name} +{PREFIX}{self.scale}' for name in names]
            self.valid_prog_environs = [f'+mpi +{name}' for name in names]
            return
        # A fabric is offered by a partition (it has the device) and by an MPI (it was built in).
        self.valid_systems = [f'+{self.fabric} +{PREFIX}{self.scale}']
        self.valid_prog_environs = [f'+mpi +{self.fabric}']
        fabric = _CATALOGUE.fabrics[self.fabric]
        # Within a node an MPI may answer for a network by shared memory: nothing would be shown.
        is_nothing = is_one and layout_of(self.layout).is_between_nodes
        is_reached = is_one or fabric.crosses_nodes
        if is_nothing or not is_reached or (is_one and fabric.needs_device):
            self.valid_systems = []

    def narrow_to_first_fabric(self, order: Sequence[str] = ()) -> None:
        """Leave only the environments whose first fabric is this one.

        Within a node such a check shows nothing of a fabric that the MPI benchmarks do not.

        :param order: of the fabrics; that of the catalogue if it is empty.
        """
        names = order or offered_features(_CATALOGUE.fabrics)
        earlier = takewhile(lambda name: name != self.fabric, names)
        wanted = ['+mpi', f'+{self.fabric}', *(f'-{name}' for name in earlier)]
        self.valid_prog_environs = [' '.join(wanted)]

    def narrow_to_best_between_nodes(self) -> None:
        """Leave only partitions without a better network, and environments without an earlier one.

        Better is one with a device of its own: an MPI may be built for more of them than there are.
        """
        earlier = takewhile(lambda name: name != self.fabric, _CATALOGUE.best_first(True))
        for name in earlier:
            if _CATALOGUE.fabrics[name].needs_device:
                self.valid_systems = [f'{wanted} -{name}' for wanted in self.valid_systems]
            else:
                self.valid_prog_environs = [f'{one} -{name}' for one in self.valid_prog_environs]

    def narrow_to_features(self, *features: str) -> None:
        """Leave only the environments that have one of the features as well."""
        self.valid_prog_environs = [
            f'{wanted} +{one}' for wanted in self.valid_prog_environs for one in features
        ]

    @property
    def is_smoke_case(self) -> bool:
        """Whether this is the first layout, on one node or, for a network, on two to four.

        On a system of single nodes a network's messages stay within the node.
        """
        if self.fabric == DEFAULT:
            return False
        between = [name for name in scales(4) if not is_at_most(name, 1)]
        has_network = between and _CATALOGUE.fabrics[self.fabric].crosses_nodes
        return self.scale in (between if has_network else ['1_node']) and self.is_first_layout

    @property
    def is_first_layout(self) -> bool:
        first: str = type(self).param_space.params['layout'].values[0]
        return self.layout == first

    @property
    def is_maintenance_case(self) -> bool:
        """Whether this takes few nodes."""
        return is_at_most(self.scale, 2)

    @run_after('init')
    def select_modes(self) -> None:
        modes = {
            'smoke': self.is_smoke_case,
            'maintenance': self.is_maintenance_case,
            'acceptance': True,
        }
        self.tags |= {self.scale, *(mode for mode, has_it in modes.items() if has_it)}

    @run_after('setup')
    def assert_chosen_here(self) -> None:
        # What ReFrame's options put in the place of what the check asks for.
        if '*' in (*self.valid_systems, *self.valid_prog_environs):
            raise ReframeError(
                f'{type(self).__name__} runs where partition and environment offer {self.fabric}: '
                f'leave out --skip-system-check and --skip-prgenv-check'
            )
        if self.local:
            where = self.current_partition.fullname
            raise ReframeError(f'{where} has a scheduler and a launcher: leave out local=yes')


#: The longest that a job may wait in a queue, where one that can never start waits for ever. `assay
#: run` tells the scheduler's reason meanwhile.
IN_QUEUE = '24h'


class TakesTurns(RegressionTestPlugin):
    """A check whose jobs measure no other run's."""

    @run_before('compile')
    @run_before('run')
    def wait_for_turn(self) -> None:
        if not self.is_dry_run() and turn.is_needed(rt.runtime().site_config):
            _take_turn()


@cache
def _take_turn() -> None:
    """Once for this process, unless the command that started it has the turn for it."""
    if turn.VARIABLE not in os.environ:
        turn.take(f'run {runs.this_run().folder.name}', say)


class KeepsTimeLimit(RegressionTestPlugin):
    """A check whose jobs, and builds as jobs, ask for no more time than their partition has.

    A scheduler may let a job that asks for more wait for ever.
    """

    @run_after('setup')
    def keep_time_limit(self) -> None:
        if not self.current_partition.time_limit:
            return
        most = Duration.__rfm_cast_str__(self.current_partition.time_limit)
        for name in ('time_limit', 'build_time_limit'):
            if (asked := getattr(self, name)) and asked > most:
                setattr(self, name, most)
