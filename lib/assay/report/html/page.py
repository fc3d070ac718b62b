"""The page itself: the template filled, and what lets it load nothing from anywhere."""

from __future__ import annotations

from pathlib import Path

from assay import AssayError
from assay.files import write_whole
from assay.report.html.contents import Contents
from assay.report.html.embedded import Plotly, as_json, digest, packed, plotly
from assay.text import plain, visible_lines

HERE = Path(__file__).parent
TEMPLATE = 'page.html.jinja'

#: Characters of a name in a table of figures: a longer one is cut in its middle.
LONGEST = 160


def page(found: Contents) -> str:
    """HTML of one file, the same for the same contents.

    Whatever a job, a scheduler or a user wrote is text in it: it is escaped where it stands, and
    made visible where it would be hidden.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

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
    environment.filters['short'] = _short
    names = ('page.css', 'begin.js', 'page.js')
    style, begin, script = (HERE.joinpath(name).read_text() for name in names)
    charts = found.drawn
    drawing = plotly() if charts else Plotly('', Markup(), '')
    policy = '; '.join(
        [
            "default-src 'none'",
            f'script-src {digest(begin)} {digest(script)} {drawing.digest}'.rstrip(),
            # Plotly puts its rules into a style that is empty at first.
            f'style-src {digest(style)} {digest("")}',
            'img-src data: blob:',
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return environment.get_template(TEMPLATE).render(
        found=found,
        policy=policy,
        style=Markup(style),
        begin=Markup(begin),
        script=Markup(script),
        plotly=drawing.packed,
        unused_style=drawing.style,
        charts=packed(as_json([chart.drawn for chart in charts])) if charts else '',
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else plain(name, LONGEST)


def write(path: Path, found: Contents) -> None:
    """Write the page, whole or not at all.

    :raises AssayError: if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, page(found))
    except OSError as error:
        raise AssayError(f'{path}: cannot be written: {error.strerror}') from None
