"""The catalogue of faults: what is broken and how, and what has to be said of it.

A file of ``tests/faults/catalogue`` is a mapping of names to faults; its name is their kind
(network, node, software, placement, scheduler). The fields are those of :class:`Fault`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from assay import AssayError, paths
from assay.config.yaml_file import read_yaml
from assay.mpis.family import Entry, Expression, Variables, problems_in_words
from assay.text import unknown_name

CATALOGUE = paths.ROOT / 'tests' / 'faults' / 'catalogue'

#: Of a fault that is there or not, ``high`` is the only one.
Severity = Literal['low', 'middle', 'high']
SEVERITIES: tuple[Severity, ...] = ('low', 'middle', 'high')

#: What stands for the severity's value in a command or variable.
VALUE = '{}'

#: The check that is no check but ``assay screen``.
SCREEN = 'screen'

#: Before the run; while its job runs; or so long before it that Slurm knows of it.
Moment = Literal['before', 'under a running job', 'long before']


class OnNode(Entry):
    """A shell command on a node.

    :param node: such as ``n2``, or ``head``.
    :param run: what is run; ends with the fault, if it has not ended before.
    :param undo: what is run when the fault is healed.
    """

    node: str
    run: str
    undo: str | None = None


class Fault(Entry):
    """A fault, and how it must be seen.

    :param what: it is, in words; the value of the severity stands for ``{}``.
    :param severities: the values of the severities; none for a fault that is there or not.
    :param nodes: of the cluster that it is brought into.
    :param cpus: of each of them.
    :param switches: that they are behind.
    :param cluster: kind, node, value, jitter and peer of ``assay cluster fault``, a line each.
    :param variables: of every job, as a module or a profile leaves them.
    :param preload: a library of ``tests/programs/faults`` that every rank of a job loads first.
    :param on_nodes: shell commands on nodes.
    :param moment: when it is brought in.
    :param check: the check that meets it, as ``-n`` of ``assay run`` has it; or ``screen``, whose
        sentences begin with what they accuse: ``node n3: ``, ``pair n2 n5: ``, ``group n1 n2: ``.
    :param past: how many healthy screenings are made before, if only they show the fault.
    :param cause: what its sentence has to say; none where the check has to stay green.
    :param green: checks that have to stay green, by the beginning of their names.
    :param missed: why nobody sees it yet, if so: it stays in the matrix, and fails no campaign.
    """

    what: str
    severities: dict[Severity, int | float | str] = Field(default_factory=dict)
    nodes: int = Field(2, ge=1)
    cpus: int = Field(1, ge=1)
    switches: int = Field(1, ge=1)
    cluster: list[str] = Field(default_factory=list)
    variables: Variables = Field(default_factory=dict)
    preload: str | None = None
    on_nodes: list[OnNode] = Field(default_factory=list)
    moment: Moment = 'before'
    check: str
    past: int = Field(1, ge=1)
    cause: Expression | None = None
    green: list[str] = Field(default_factory=list)
    missed: str | None = None

    @model_validator(mode='after')
    def _breaks_something(self) -> Fault:
        if not (self.cluster or self.variables or self.preload or self.on_nodes):
            raise ValueError('breaks nothing: cluster, variables, preload and on_nodes are empty')
        if self.check == SCREEN and (self.green or self.moment == 'under a running job'):
            raise ValueError('a screening stands alone: no green checks, no running job')
        if self.past > 1 and self.check != SCREEN:
            raise ValueError('has a past, which only screenings are held against')
        if self.missed and not self.cause:
            raise ValueError('is harmless, and so cannot be missed')
        return self

    @property
    def degrees(self) -> list[Severity]:
        """The severities at which it can be brought in, from the lowest."""
        return [one for one in SEVERITIES if one in self.severities] or ['high']

    def fill(self, text: str, severity: Severity) -> str:
        """A text of the fault, with the severity's value in place of ``{}``."""
        return text.replace(VALUE, str(self.severities.get(severity, '')))


def load_faults(folder: Path = CATALOGUE) -> dict[str, Fault]:
    """All faults, by kind and name: ``network/delay``.

    :raises AssayError: if a file cannot be used; the message names file, fault and field.
    """
    found = {}
    for path in sorted(folder.glob('*.yaml')):
        entries = read_yaml(path)
        if not isinstance(entries, dict):
            raise AssayError(f'{path}: not a mapping of names to faults')
        for name, entry in entries.items():
            try:
                found[f'{path.stem}/{name}'] = Fault.model_validate(entry)
            except ValidationError as error:
                raise AssayError(f'{path}: {name}.{problems_in_words(error)}') from None
    return found


def choose_faults(faults: dict[str, Fault], names: list[str]) -> dict[str, Fault]:
    """The named faults, by a name or a kind; all of them if nothing was named.

    :raises AssayError: if there is none of that name.
    """
    kinds = {name.partition('/')[0] for name in faults}
    for name in names:
        if name not in kinds | faults.keys():
            raise AssayError(unknown_name(name, 'fault', kinds | faults.keys()))
    return {
        name: fault
        for name, fault in faults.items()
        if not names or {name, name.partition('/')[0]} & set(names)
    }
