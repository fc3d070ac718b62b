"""The contract by which a machine is accepted: ``contract.yaml``, which both parties sign."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from assay import AssayError
from assay.acceptance import yaml_lines
from assay.acceptance.files import canonical, digest
from assay.acceptance.yaml_lines import Place, YamlLines
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.config.scales import PARTS, SCALES, is_scale
from assay.files import explain_errors, read_bounded
from assay.job.launch import OF_WITNESS
from assay.layout.layouts import LAYOUTS
from assay.programs.figure import Quantity, quantity_of
from assay.text import did_you_mean, plain, similar, unknown_name

Statistic = Literal['median', 'minimum', 'maximum', 'mean']
Direction = Literal['higher', 'lower']

#: Bytes of a contract at most.
MOST_CONTRACT = 1 << 20

#: More runs, jobs or nodes than this are a mistake.
MOST_RUNS, MOST_JOBS, MOST_NODES = 199, 1_000_000, 1_000_000

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r'^[^\s\x00-\x1f][^\x00-\x1f]*$')]
Identifier = Annotated[str, Field(max_length=100, pattern=r'^[A-Za-z0-9][A-Za-z0-9._-]*$')]
Fraction = Annotated[float, Field(gt=0, lt=1)]


class Part(BaseModel):
    """A part of a contract: no other fields, no value of another kind, nothing infinite."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True, allow_inf_nan=False)


class Party(Part):
    """A party, and who signs for it."""

    name: Name = Field(description='the name of the organisation')
    signers: tuple[Name, ...] = Field(
        min_length=1, description='a list of the names of those who sign for it'
    )


class Parties(Part):
    """The buyer and the vendor."""

    buyer: Party = Field(description='name and signers of the buyer')
    vendor: Party = Field(description='name and signers of the vendor')


class ContractNodes(Part):
    """The nodes that have to take part: by their names, or so many of any."""

    names: tuple[Identifier, ...] | None = Field(
        None,
        min_length=1,
        description='a list of host names, each written out, as the scheduler has them',
    )
    number: int | None = Field(
        None, ge=1, le=MOST_NODES, description='how many nodes, a whole number from 1'
    )
    may_be_missing: int = Field(
        0, ge=0, description='how many of them may be missing, a whole number from 0'
    )

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.names) if self.names is not None else self.number or 0


class Commitment(Part):
    """A figure, and the value that the vendor commits to.

    ``fabric``, ``layout``, ``scale`` and ``environment`` are any where the system has one only.
    """

    id: Identifier = Field(
        description='a name of letters, digits, dots, underscores and dashes, in no other one'
    )
    check: Identifier = Field(description='the class of a check, such as Ring')
    figure: Identifier = Field(description='a figure of the check, such as hop_latency')
    fabric: Identifier | None = Field(None, description='a fabric, such as shm')
    layout: Identifier | None = Field(None, description='a layout, such as packed')
    scale: Identifier | None = Field(None, description='a scale, such as 1_node')
    environment: Identifier | None = Field(
        None, description='an environment of the system, such as openmpi'
    )
    parameters: dict[Identifier, Identifier] = Field(
        default_factory=dict,
        description='other parameters of the check with their values, such as size: cache',
    )
    value: float = Field(gt=0, description='what is committed, a number above 0')
    unit: Annotated[str, Field(max_length=20, pattern=r'^[!-~]+$')] = Field(
        description='the unit of the figure as a run shows it, such as us; "1" for ratios'
    )
    better: Direction = Field(description='higher or lower: the direction in which it gets better')
    statistic: Statistic = Field(
        description='median, minimum, maximum or mean: which one of the runs is held to the value'
    )
    runs: int = Field(
        ge=1, le=MOST_RUNS, description=f'how many runs, a whole number from 1 to {MOST_RUNS}'
    )
    largest_spread: float | None = Field(
        None,
        gt=0,
        le=10,
        description='the largest value of the runs over the smallest, less 1, such as 0.05',
    )
    expected_spread: Fraction | None = Field(
        None,
        description='standard deviation between runs over their mean, between 0 and 1: for plans '
        'of what no history shows',
    )


class TuningRules(Part):
    """The settings that the vendor may tune."""

    category: Literal['base', 'peak'] = Field(description='base or peak: whether tuning is allowed')
    text: Text = Field(description='the rules in words, a text')
    variables: tuple[Annotated[str, Field(pattern=r'^[A-Za-z_][A-Za-z0-9_]*$')], ...] = Field(
        (), description='a list of the environment variables that may be set; only of peak'
    )


class Stability(Part):
    """How long and how well the machine has to run."""

    hours: float = Field(ge=0, le=10_000, description='hours of measuring in all, a number from 0')
    share: float = Field(
        1.0, gt=0, le=1, description='share of cases that must pass, above 0 and at most 1'
    )
    most_failed_nodes: int = Field(
        0, ge=0, description='on how many nodes cases may fail, a whole number from 0'
    )


class Waiver(Part):
    """A commitment that is given up, and by whom. It never counts as met."""

    commitment: Identifier = Field(description='the id of a commitment')
    by: Name = Field(description='the name of who gives it up: a signer of the buyer')
    reason: Text = Field(description='why, a text')


class Risks(Part):
    """How often the decision may be wrong, and which machines that is about.

    A machine is good if all its figures are better than the commitments by ``good``, and bad if one
    is worse by ``bad``.
    """

    producer: Fraction = Field(
        description='how often a good machine may fail, between 0 and 1, such as 0.05'
    )
    consumer: Fraction = Field(
        description='how often a bad machine may pass, between 0 and 1, such as 0.05'
    )
    good: Fraction = Field(
        description='by which fraction above a commitment a machine is good, such as 0.02'
    )
    bad: Fraction = Field(
        description='by which fraction below a commitment a machine is bad, such as 0.03'
    )


class Contract(Part):
    """The terms that a machine is accepted by."""

    name: Name = Field(description='what is accepted, a text')
    parties: Parties = Field(description='buyer and vendor')
    system: Annotated[str, Field(max_length=200, pattern=r'^[A-Za-z0-9_-]+(:[A-Za-z0-9_-]+)?$')] = (
        Field(description='a system of config/systems, or SYSTEM:PARTITION')
    )
    nodes: ContractNodes = Field(description='names or number of the nodes that have to take part')
    commitments: tuple[Commitment, ...] = Field(
        min_length=1, max_length=1000, description='a list of figures, each with its value'
    )
    rules: TuningRules = Field(description='what may be tuned')
    stability: Stability = Field(
        default_factory=lambda: Stability(hours=0),
        description='hours, share of cases that must pass, and most_failed_nodes',
    )
    screening_first: bool = Field(
        False, description='true or false: whether the nodes are screened before anything else'
    )
    waivers: tuple[Waiver, ...] = Field((), description='a list of commitments that are given up')
    risks: Risks = Field(description='how often the decision may be wrong')
    most_jobs: int = Field(
        ge=1, le=MOST_JOBS, description='how many jobs there may be, a whole number from 1'
    )

    @property
    def digest(self) -> str:
        """SHA-256 of what the contract says, whatever its layout and comments; hexadecimal."""
        return digest(canonical(self.model_dump(mode='json')))

    def waiver(self, commitment: str) -> Waiver | None:
        """By whom a commitment was given up; None if it was not."""
        return next((one for one in self.waivers if one.commitment == commitment), None)


def read_contract(path: Path, may_be_pipe: bool = False) -> Contract:
    """The contract of a file.

    :param may_be_pipe: whether it is what a user names, not a file of an archive.
    :raises AssayError: with all that is wrong in it, a line each: file, line, field, and what would
        be right.
    """
    if may_be_pipe:
        with explain_errors(path, 'read'):
            data = path.read_bytes()
    else:
        data = read_bounded(path, MOST_CONTRACT)
    try:
        text = data.decode()
    except UnicodeError:
        raise AssayError(f'{path}: is no text in UTF-8') from None
    return parse_contract(text, path)


def parse_contract(text: str, path: Path) -> Contract:
    """As :func:`read_contract`, of the text of a file.

    :param path: for messages.
    """
    try:
        found = yaml_lines.read_yaml_lines(text)
    except ValueError as error:
        raise AssayError(f'{path}, {plain(error)}') from None
    mistakes = [*found.mistakes]
    contract = None
    try:
        # As JSON: there a list is a list, and a number no truth value.
        contract = Contract.model_validate_json(json.dumps(found.data))
    except ValidationError as error:
        told = {place for place, _ in mistakes}
        for one in error.errors(include_url=False):
            # Without the words that pydantic adds for keys.
            place = tuple(part for part in one['loc'] if part != '[key]')
            # A list whose entries are all wrong is not empty as well.
            is_news = place not in told and not (one['type'] == 'too_short' and one['input'])
            if is_news:
                mistakes.append((place, _told(place, one)))
    if contract:
        mistakes += [*_disagreements(contract, found), *_unknown_names(contract)]
    if mistakes or not contract:
        raise AssayError('\n'.join(_sentences(path, mistakes, found)))
    return contract


Mistake: TypeAlias = tuple[Place, str]


def _sentences(path: Path, mistakes: list[Mistake], found: YamlLines) -> Iterator[str]:
    for place, what in sorted(mistakes, key=lambda one: found.line(one[0])):
        field = ''.join(f'[{one}]' if isinstance(one, int) else f'.{one}' for one in place)
        line, _, rest = what.partition(': ')
        if not line.startswith('line '):
            line, rest = f'line {found.line(place)}', what
        yield f'{path}, {line}: {plain(field.lstrip(".") or "the contract", 200)}: {plain(rest)}'


def _told(place: Place, error: Any) -> str:
    """A mistake that pydantic found, in words."""
    kind, (field, _) = error['type'], _at(place)
    description = (field and field.description) or 'as in docs/contract.yaml'
    if kind == 'missing':
        return f'is missing: {description}'
    if kind == 'extra_forbidden':
        _, part = _at(place[:-1])
        known = [*part.model_fields] if part else []
        hint = did_you_mean(similar(str(place[-1]), known, most=1))
        return f'no such field; {hint or "there are " + ", ".join(known)}'
    value = error['input']
    if isinstance(value, dict):
        shown = 'a mapping'
    elif isinstance(value, list):
        shown = 'a list' if value else 'an empty list'
    elif value is None:
        shown = 'empty'
    else:
        shown = str(value).lower() if isinstance(value, bool) else f'{value!r:.100}'
    return f'is {shown}; it must be {description}'


def _at(place: Place) -> tuple[FieldInfo | None, type[Part] | None]:
    """The field of a place, or of the list that it is in; and the part that this field has."""
    field: FieldInfo | None = None
    part: type[Part] | None = Contract
    for step in place:
        if isinstance(step, str):
            field = part.model_fields.get(step) if part else None
            kind = field.annotation if field else None
            inner = get_args(kind) or (kind,)
            part = next((one for one in inner if isinstance(one, type(Part))), None)
    return field, part


def _disagreements(contract: Contract, found: YamlLines) -> Iterator[Mistake]:
    """Contradictions between parts of a contract."""
    nodes = contract.nodes
    if (nodes.names is None) == (nodes.number is None):
        yield ('nodes',), 'give either names or number'
    elif nodes.may_be_missing >= nodes.count:
        yield ('nodes', 'may_be_missing'), f'all of {nodes.count} might be missing: give fewer'
    for host, count in Counter(nodes.names or ()).items():
        if count > 1:
            yield ('nodes', 'names'), f'{host} stands there {count} times: name each once'
    if contract.rules.category == 'base' and contract.rules.variables:
        yield ('rules', 'variables'), 'of base no variable may be set: remove them, or say peak'
    parties = contract.parties
    for who, count in Counter((*parties.buyer.signers, *parties.vendor.signers)).items():
        if count > 1:
            yield ('parties',), f'{who} stands there {count} times: each signs once, for one party'
    yield from _of_commitments(contract, found)
    yield from _of_waivers(contract)


def _of_commitments(contract: Contract, found: YamlLines) -> Iterator[Mistake]:
    lines: dict[str, int] = {}
    for number, one in enumerate(contract.commitments):
        place = ('commitments', number)
        if one.id in lines:
            yield (*place, 'id'), f'{one.id!r} is also in line {lines[one.id]}: call it otherwise'
        lines.setdefault(one.id, found.line((*place, 'id')))
        if one.statistic == 'median' and not one.runs % 2:
            odd = f'{one.runs - 1} or {one.runs + 1}'
            yield (*place, 'runs'), f'is {one.runs}; a median needs an odd number: {odd}'
        if one.largest_spread is not None and one.runs == 1:
            yield (*place, 'largest_spread'), 'one run has no spread: give more runs, or none of it'
    if contract.most_jobs < max(one.runs for one in contract.commitments):
        most = max(one.runs for one in contract.commitments)
        yield ('most_jobs',), f'is {contract.most_jobs}; there must be at least {most}, as of runs'


def _unknown_names(contract: Contract) -> Iterator[Mistake]:
    """Names that the suite does not have, and figures that are not as their check declares them."""
    from assay.checks.check import all_checks  # with ReFrame, which takes its time

    checks = all_checks()
    scales = (one.scale for one in contract.commitments if one.scale)
    known: dict[str, Iterable[str]] = {
        'fabric': [*load_catalogue().fabrics, DEFAULT],
        'layout': LAYOUTS,
        'scale': [*SCALES, *PARTS, *filter(is_scale, scales)],
        'check': checks,
    }
    for number, one in enumerate(contract.commitments):
        place = ('commitments', number)
        wrong = [field for field in known if getattr(one, field) not in (None, *known[field])]
        for field in wrong:
            yield (*place, field), unknown_name(getattr(one, field), field, known[field])
        if 'check' not in wrong:
            yield from _undeclared(one, checks[one.check].measures, place)


def _undeclared(
    one: Commitment, measures: Mapping[str, Quantity], place: Place
) -> Iterator[Mistake]:
    """Where a figure is not as its check declares it.

    :param measures: what the check declares; a check that declares none may have any.
    """
    if not measures:
        return
    quantity = quantity_of({**measures, **OF_WITNESS}, one.figure)
    if quantity is None:
        yield (*place, 'figure'), unknown_name(one.figure, f'figure of {one.check}', measures)
        return
    if quantity.unit != one.unit:
        yield (*place, 'unit'), f'is {one.unit!r}; {one.figure} is measured in {quantity.unit!r}'
    if quantity.better != one.better:
        yield (*place, 'better'), f'is {one.better}; of {one.figure} it is {quantity.better}'


def _of_waivers(contract: Contract) -> Iterator[Mistake]:
    ids = [one.id for one in contract.commitments]
    given_up = [one.commitment for one in contract.waivers]
    for number, waiver in enumerate(contract.waivers):
        place = ('waivers', number)
        if waiver.commitment not in ids:
            hint = did_you_mean(similar(waiver.commitment, ids, most=1))
            others = hint or f'there are {", ".join(ids)}'
            yield (
                (*place, 'commitment'),
                f'no commitment has the id {waiver.commitment!r}; {others}',
            )
        if waiver.commitment in given_up[:number]:
            yield (*place, 'commitment'), f'{waiver.commitment} is given up twice: remove one'
        if waiver.by not in contract.parties.buyer.signers:
            signers = ', '.join(contract.parties.buyer.signers)
            yield (*place, 'by'), f'{waiver.by!r} is no signer of the buyer; there are {signers}'
    if {*ids} <= {*given_up}:
        yield ('waivers',), 'every commitment is given up: nothing would be accepted by'
