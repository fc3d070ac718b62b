"""Pages: of a run that is stored or has just ended, and of one job; they load nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assay import AssayError, __version__
from assay.files import write_whole
from assay.report.html import jobs, screened
from assay.report.html.chart import Chart, Grid
from assay.report.html.contents import Contents, Subject, page_contents
from assay.report.witness import job_summary
from assay.results.cases import Run
from assay.results.history import History, StoredRun, load_history
from assay.results.verdict import Verdict
from assay.text import plain, visible_lines
from assay.witness import Report

HERE = Path(__file__).parent

#: Characters of a name in a table of figures: a longer one is cut in its middle.
LONGEST = 160


def page(found: Contents) -> str:
    """HTML of one file, the same for the same contents."""
    return _filled('page.html.jinja', found.drawn, found=found)


def page_of_job(report: Report) -> str:
    """HTML of one job, as its witness saw it.

    :raises AssayError: if there is nothing to draw.
    """
    charts = jobs.of_job(report)
    program, *arguments = report.command or ['']
    title = plain(' '.join([Path(program).name, *arguments]), LONGEST)
    lines = job_summary(report).splitlines()
    return _filled('job.html.jinja', charts, title=title, lines=lines, of_job=charts)


def _filled(template: str, charts: Sequence[Chart | Grid], **values: object) -> str:
    """A template with these charts.

    Whatever a job, a scheduler or a user wrote is text in it: it is escaped where it stands, and
    made visible where it would be hidden.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda one: (
            one if isinstance(one, Markup) or not isinstance(one, str) else visible_lines(one)
        ),
    )
    environment.filters['short'] = lambda name: (
        name if len(name) <= LONGEST else plain(name, LONGEST)
    )
    names = ('page.css', 'begin.js', 'page.js')
    style, begin, script = (HERE.joinpath(name).read_text() for name in names)
    drawing = plotly() if charts else Plotly('', Markup(), '')
    policy = '; '.join(
        [
            "default-src 'none'",
            f'script-src {policy_digest(begin)} {policy_digest(script)} {drawing.digest}'.rstrip(),
            # Plotly puts its rules into a style that is empty at first.
            f'style-src {policy_digest(style)} {policy_digest("")}',
            'img-src data: blob:',
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return environment.get_template(template).render(
        **values,
        version=__version__,
        policy=policy,
        style=Markup(style),
        begin=Markup(begin),
        script=Markup(script),
        plotly=drawing.packed,
        unused_style=drawing.style,
        charts=pack(embedded_json([chart.drawn for chart in charts])) if charts else '',
    )


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all.

    :raises AssayError: if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:  # which may name another file than was asked for
        raise AssayError(f'{path}: cannot be written: {error.strerror}') from None


# Texts embedded in the page -----------------------------------------------------------------------


def embedded_json(value: object) -> Markup:
    """JSON in which nothing ends a script, begins a comment, or is obeyed by anything."""
    text = json.dumps(_visible(value), separators=(',', ':'), allow_nan=False)
    for sign in '<>&':
        text = text.replace(sign, f'\\u{ord(sign):04x}')
    return Markup(text)


def _visible(value: object) -> object:
    if isinstance(value, str):
        return visible_lines(value)
    if isinstance(value, float) and math.isfinite(value):
        short = float(f'{value:.5g}')  # no screen shows more of it
        return short if math.isfinite(short) else value
    if isinstance(value, dict):
        return {str(name): _visible(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(one) for one in value]
    return value


def pack(text: str) -> Markup:
    """A text for the browser to unpack: by gzip, and in Base64; the same for the same text."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode())


def policy_digest(text: str) -> str:
    """The hash by which the page's policy allows this script or style, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True)
class Plotly:
    """The library that draws the charts.

    :param digest: of its script.
    :param packed: the script, as :func:`pack` leaves it.
    :param style: identifier of a style that it would put into every page, for its maps: a page that
        has one already gets none, and has to allow none.
    """

    digest: str
    packed: Markup
    style: str


@cache
def plotly() -> Plotly:
    """The installed library."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script: str = get_plotlyjs()
    style = re.search(r'getElementById\("([0-9a-f]{64})"\)', script)
    return Plotly(policy_digest(script), pack(script), style[1] if style else '')


# Pages of runs ------------------------------------------------------------------------------------


def write_stored(path: Path, history: History, runs: Sequence[StoredRun]) -> None:
    """The page of the newest of some runs, compared with the others.

    The newest runs of two systems stand beside each other.

    :param runs: oldest first, at least one.
    :raises AssayError: if one cannot be read, they are of more systems, or the file cannot be
        written.
    """
    systems = {stored.summary.system: stored for stored in runs if stored.summary.system}
    if len(systems) > 2:
        names = ', '.join(sorted(plain(name) for name in systems))
        raise AssayError(
            f'the runs are of {len(systems)} systems, {names}, and a page shows two side by side: '
            'choose runs of fewer, or one system by --system NAME.'
        )
    shown = runs[-1]
    other = systems.keys() - {shown.summary.system} if shown.summary.system else ()
    there = systems[next(iter(other))] if other else None
    others = [stored for stored in runs[:-1] if stored.summary.system not in other]
    run = history.run_of(shown)
    subject = Subject(
        run,
        shown.verdict,
        shown.problems,
        None,
        others,
        history,
        # Of a report from elsewhere the machine is another, whatever it is called.
        screened.screenings_of(run) if shown.file is None else (),
        (there, history.run_of(there)) if there else None,
    )
    write_page(path, page(page_contents(subject)))


def write_ended(path: Path, run: Run, verdict: Verdict, log: Sequence[str]) -> None:
    """The page of a run that has just ended, with the history that it is part of.

    :raises AssayError: if the history cannot be read, or the file cannot be written.
    """
    seen = screened.screenings_of(run)
    subject = Subject(run, verdict.word, verdict.problems, log, (), load_history(), seen)
    write_page(path, page(page_contents(subject)))
