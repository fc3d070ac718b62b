"""The result of a screening as text, with the commands that would drain nodes, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from assay.files import json_text
from assay.report.console import console, print_line
from assay.screening.findings import ScreeningFinding
from assay.screening.measured import Screening
from assay.screening.verdict import ScreeningVerdict
from assay.text import fold_nodes, many, plain

#: What takes a node out of service, by ReFrame's name of the scheduler.
_DRAIN = {
    'slurm': 'scontrol update NodeName={node} State=DRAIN Reason={reason}',
    'pbs': 'pbsnodes -o -C {reason} {node}',
    'torque': 'pbsnodes -o -N {reason} {node}',
}
_DRAIN['squeue'] = _DRAIN['slurm']


def show_screening(now: Screening, verdict: ScreeningVerdict, scheduler: str, path: Path) -> None:
    """All that was found, what would drain the bad nodes, and the verdict in the last line."""
    out = console()
    print_line(out, screening_subject(now, verdict, f'{now.begun:%Y-%m-%d %H:%M}'))
    if verdict.without_peers:
        print_line(out, nodes_without_peers(verdict))
    for line in (*nodes_not_measured(now), *noise_lines(verdict)):
        print_line(out, line)
    for one in verdict.findings:
        print_line(out, f'\n{headline(one)}')
        for line in evidence_lines(one):
            print_line(out, f'  {line}')
    if lines := [*drain_lines(now, verdict, scheduler)]:
        print_line(out, '\nto drain them:')
        for line in lines:
            print_line(out, f'  {line}')
    print_line(out, f'\nkept in {path}')
    print_line(out, screening_conclusion(now, verdict))


def screening_subject(now: Screening, verdict: ScreeningVerdict, begun: str) -> str:
    """One sentence: the nodes and pairs that were measured, and the earlier screenings.

    :param begun: when that was, in words.
    """
    pairs, times = now.links.latency.shape
    return (
        f'{many(len(now.nodes), "node")} of {now.system}, {now.environment}, {now.fabric}, '
        f'{begun}: {many(now.sweeps, "sweep")} of each, {many(pairs, "pair")} '
        f'measured {times} times; held against {many(verdict.earlier, "earlier screening")}'
    )


def nodes_without_peers(verdict: ScreeningVerdict) -> str:
    """A sentence on the nodes that have no peers."""
    return f'too few of a kind to be judged: {node_set(verdict.without_peers)}'


def nodes_not_measured(now: Screening) -> Iterable[str]:
    """The other nodes of the partition, with those of one state in one line."""
    by_state: dict[str, list[str]] = {}
    for name, why in now.left_out.items():
        by_state.setdefault(why, []).append(name)
    return [f'not measured: {node_set(names)} ({why})' for why, names in by_state.items()]


def evidence_lines(one: ScreeningFinding) -> list[str]:
    """The evidence, and its likely reason."""
    lines = [f'{why.figure}: {why.text}' for why in one.evidence]
    return [*lines, f'likely reason: {one.reason}'] if one.reason else lines


def noise_lines(verdict: ScreeningVerdict) -> list[str]:
    """The nodes that are interrupted more than their peers, and were not found slow."""
    return [f'noise on {plain(node)}: {words}' for node, words in verdict.noise.items()]


def headline(one: ScreeningFinding) -> str:
    """The finding in words: what is to blame, and how often that is by chance."""
    often = '' if one.chance is None else f' (by chance {_often(one.chance)})'
    return blame_in_words(one) + often


def blame_in_words(one: ScreeningFinding) -> str:
    """The nodes or links to blame, in words."""
    who = node_set(one.members)
    text = {
        'node': f'{who} is bad',
        'pair': f'the link between {" and ".join(one.members)} is bad',
        'group': f'what {who} share is bad',
        'either': f'{one.name} is bad: more nodes would tell',
        'uplinks': f'what joins the switches {one.name} is slower than before',
        'machine': 'everything is slower than before',
        'different': f'{who} is different',
        'suspect': f'{who} is a suspect: screen again',
        'disturbed': f'{who} was disturbed',
    }[one.kind]
    if one.kind == 'group' and one.name:
        text += f': the switch {one.name}, or its uplink'
    return text


def _often(chance: float) -> str:
    """How often sound nodes would look so."""
    if chance < 1e-6:
        return 'less than once in a million screenings'
    if chance > 0.5:
        return f'{chance:.1f} times in each screening'
    return f'once in {round(1 / chance):,} screenings'


def node_set(names: Iterable[str]) -> str:
    """Names of nodes, folded: ``n[1-4,7]``."""
    names = [*names]
    try:
        return fold_nodes(names)
    except ValueError:  # names as no host has them
        return ','.join(map(plain, names))


def drain_lines(now: Screening, verdict: ScreeningVerdict, scheduler: str) -> Iterable[str]:
    """A line of the shell for each bad node; none where the scheduler has no such command."""
    for one in verdict.drain:
        if command := _DRAIN.get(scheduler):
            node = shlex.quote(one.members[0])
            yield command.format(node=node, reason=shlex.quote(_reason(now, one)))


def _reason(now: Screening, one: ScreeningFinding) -> str:
    strongest = min(one.evidence, key=lambda found: found.chance or 0.0)
    return f'assay screen {now.begun:%Y-%m-%d}: {strongest.figure}: {strongest.text}'


def screening_conclusion(now: Screening, verdict: ScreeningVerdict) -> str:
    """One line: what was found, of how many nodes."""
    word = {0: 'NOTHING FOUND', 1: 'FOUND', 3: 'CANNOT TELL'}[verdict.exit_code]
    names = {
        'node': 'bad node',
        'group': 'bad group',
        'pair': 'bad link',
        'either': 'bad node or link',
        'uplinks': 'change between switches',
        'machine': 'change of everything',
        'different': 'different node',
        'suspect': 'suspect',
        'disturbed': 'disturbed node',
    }
    counts = {kind: sum(one.kind == kind for one in verdict.findings) for kind in names}
    told = ', '.join(many(count, names[kind]) for kind, count in counts.items() if count)
    if verdict.silent and not told:
        told = f'no answer of {node_set(verdict.silent)}; nothing found'
    of = f'{len(now.nodes)} of ' if now.left_out else ''
    total = len(now.nodes) + len(now.left_out)
    return f'{word}{": " * bool(told)}{told} of {of}{many(total, "node")}'


def screening_json(now: Screening, verdict: ScreeningVerdict, scheduler: str, path: Path) -> str:
    """JSON of all that is known."""
    return json_text(
        {
            'system': now.system,
            'environment': now.environment,
            'fabric': now.fabric,
            'begun': now.begun,
            'nodes': now.nodes,
            'sweeps': now.sweeps,
            'pairs': len(now.links.ends),
            'earlier': verdict.earlier,
            'without_peers': verdict.without_peers,
            'left_out': now.left_out,
            'findings': [{**vars(one), 'chance': one.chance} for one in verdict.findings],
            'noise': verdict.noise,
            'drain': [one.members[0] for one in verdict.drain],
            'drain_commands': [*drain_lines(now, verdict, scheduler)],
            'file': path,
            'exit_code': verdict.exit_code,
        },
        indent=2,
    )
