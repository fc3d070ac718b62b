"""The corpus of sites: which of a site's modules are asked for their MPI.

``site.yaml`` expects ``asked``, modules that are broken if they bring no MPI; ``likely``, modules
that count if they bring one that no other does; ``later``, what Lmod shows once others are loaded;
and ``left``, those that are too many.
"""

import pytest

from assay.machine import modules
from sites import sites


class Tool:
    """The modules system of a site, which says what its files hold."""

    name = 'lmod'

    def __init__(self, site):
        self.site = site

    def execute(self, *words):
        asked = ' '.join(word for word in words if not word.startswith('-'))
        return self.site.text(asked.replace('/', '%'))


@pytest.mark.parametrize('site', sites('modules'), ids=str)
def test_modules_of_sites(site, capsys):
    expect = {'likely': [], 'later': {}, 'left': [], **site.expect}
    lines = [line for line in site.text('avail').splitlines() if not line.endswith(':')]
    names = [*filter(modules.is_called_like_an_mpi, modules._names_in(lines))]
    asked = modules._asked(names)
    surely = [name for name in asked if modules.is_surely_an_mpi(name)]
    assert (surely, asked[len(surely) :]) == (expect['asked'], expect['likely'])
    assert [name for name in names if name not in asked] == expect['left']
    said = capsys.readouterr().err
    assert (f'To use another one: --mpi {" ".join(expect["left"])}' in said) == bool(expect['left'])
    assert (modules._seen_later(Tool(site)) if not surely else {}) == expect['later']
