"""The differences between runs as JSON, with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from assay.comparing.interleaved import Interleaved
from assay.files import json_text
from assay.report.diff import cause_title
from assay.results.diff.causes import Cause
from assay.results.diff.compared import Compared
from assay.results.diff.difference import Difference
from assay.results.diff.endings import Failed
from assay.results.diff.families import Finding
from assay.results.grouping import Attribute
from assay.results.statistics.comparison import Word
from assay.results.statistics.series import ratio


def diff_json(found: Difference) -> str:
    """JSON: all that is known."""
    return json_text(diff_as_object(found), indent=2)


def diff_as_object(found: Difference) -> dict[str, Any]:
    """All that is known; fractions and ratios as numbers."""
    keys = {id(one): number for number, one in enumerate(found.figures)}
    return {
        'verdict': found.verdict,
        'system': found.after[0].summary.system,
        'margin': found.margin,
        'before': [run.uuid for run in found.before],
        'after': [run.uuid for run in found.after],
        'past_runs': found.earlier.runs,
        'counts': {word.replace(' ', '_'): found.counts[word] for word in get_args(Word)}
        | {'lost': len(found.lost), 'failed_at_times': len(found.at_times)}
        | {'gone': len(found.gone)},
        'groups': [_cause_as_json(cause, keys) for cause in found.causes],
        'lost': [_failed_as_json(one) for one in found.lost],
        'failed_at_times': [_failed_as_json(one) for one in found.at_times],
        'gone': [{**vars(one.figure), 'reason': one.reason} for one in found.gone],
        'families': [_family_as_json(one, keys) for one in found.families],
        'suspects': [keys[id(one)] for one in found.suspects],
        'machine_moved': [keys[id(one)] for one in found.moved],
        'two_states': {
            name: states and {'run': states.run, 'figures': states.figures}
            for name, states in zip(('before', 'after'), found.states, strict=True)
        },
        'followed_machine': [keys[id(one)] for one in found.followed],
        'time': found.time,
        'figures': [_as_json(one) for one in found.figures],
        'only_before': found.only_before,
        'only_after': found.only_after,
        'not_judged': found.conditions,
        'facts': found.facts,
        'disturbances': dict(found.disturbances),
        'alike_disturbed': found.alike_disturbed,
    }


def _cause_as_json(cause: Cause, keys: dict[int, int]) -> dict[str, Any]:
    group = cause.group
    return {
        'word': cause.word,
        'title': cause_title(cause),
        'shared': _as_objects(group.shared) if group else None,
        'likewise': _as_objects(group.likewise) if group else [],
        'figures': [keys[id(one)] for one in cause.figures],
        'others': list(group.others) if group else [],
        'facts': cause.facts,
        'time': cause.time,
    }


def _family_as_json(one: Finding, keys: dict[int, int]) -> dict[str, Any]:
    return {
        'name': one.name,
        'word': one.word,
        'ratio': ratio(one.change),
        'p_value': one.p_value,
        'figures': [keys[id(figure)] for figure in one.members],
        'changed': [keys[id(figure)] for figure in one.changed],
        'facts': one.facts,
    }


def _failed_as_json(one: Failed) -> dict[str, Any]:
    ends = {word: count for word, count in one.ends.items() if word}
    return {'case': one.case, 'ends': ends, 'runs': one.ends.total()}


def _as_objects(attributes: Iterable[Attribute]) -> list[dict[str, str]]:
    return [{'kind': kind, 'value': value} for kind, value in attributes]


def _as_json(one: Compared) -> dict[str, Any]:
    told: dict[str, Any] = {
        **vars(one.figure),
        'check': one.after.check,
        'fabric': one.after.fabric,
        'layout': one.after.layout,
        'scale': one.after.scale,
        'better': one.after.better or one.before.better,
        'unit_before': one.before.figure.unit,
        'of_the_machine': one.is_of or None,
        'word': one.word,
        'misses_reference': one.misses,
        'reason': one.reason,
    }
    for name, side in (('before', one.before), ('after', one.after)):
        told[name] = {
            'value': side.middle,
            'sessions': side.series.size if side.series else 0,
            'values': len(side.values),
            'disturbed': side.disturbed,
            'unusable': side.unusable,
        }
    verdict = one.verdict
    comparison = verdict.comparison if verdict else None
    return told | {
        'ratio': comparison.ratio if comparison else None,
        'interval': verdict.interval if verdict else None,
        'smallest': verdict.smallest if verdict else None,
        'more_runs': verdict.more_runs if verdict else None,
        'p_value': verdict.p_value if verdict else None,
        'error_term': comparison.term if comparison else None,
    }


def interleaved_json(found: Interleaved) -> str:
    """JSON: that of stored runs, and what is known beside it."""
    told = {
        'settings': [str(one) for one in found.settings],
        'measured_again': found.suspects,
        'pairs': found.pairs,
        'stopped': found.stopped or None,
        'uneven': found.uneven,
        'failed_with_both': found.failed,
        **diff_as_object(found.difference),
    }
    told['verdict'] = found.verdict
    return json_text(told, indent=2)
