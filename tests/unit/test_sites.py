"""The corpus of sites as a whole; a file test_sites_KIND.py holds what Assay makes of each."""

import pytest

from assay import paths
from sites import SITES, sites
from wording import hold_page

PAGE = paths.ROOT / 'docs' / 'sites.md'

ALL = sites()

#: What kinds of situations there are, in the page's words.
KINDS = {
    'slurm': 'Slurm: partitions and policies',
    'jobs': 'Jobs: how they wait and end',
    'topology': 'Nodes: processors and memory',
    'modules': 'Names of modules',
    'mpi': 'MPIs',
}


def page():
    """The page of all situations."""
    pieces = [
        '# Sites',
        'How Assay handles the policies, names and processors of real sites. Each row is a folder '
        'of `tests/sites` with outputs, recorded or made up, that a test reads. The source reports '
        'or documents the situation. `tests/unit/test_sites.py` writes this page.',
    ]
    for kind, words in KINDS.items():
        lines = ['| situation | what Assay does | source |', '|---|---|---|']
        for site in sites(kind):
            lines.append(f'| {site.situation} | {site.outcome} | {site.source or ""} |')
        pieces += [f'## {words}', '\n'.join(lines)]
    return '\n\n'.join(pieces) + '\n'


def test_the_page_is_of_the_corpus(request):
    hold_page(request, PAGE, page())


def test_the_corpus_is_of_the_world():
    folders = {file.parent for file in SITES.glob('*/*/*')}
    assert {site.folder for site in ALL} == {one for one in folders if one.parent.parent == SITES}
    assert {site.kind for site in ALL} <= {*KINDS}
    assert len(ALL) >= 50
    assert 3 * sum(bool(site.source) for site in ALL) >= 2 * len(ALL)


@pytest.mark.parametrize('site', ALL, ids=str)
def test_a_situation_is_told_in_a_line(site):
    for words in (site.situation, site.outcome):
        assert words and '\n' not in words and '|' not in words and not words.endswith('.')
