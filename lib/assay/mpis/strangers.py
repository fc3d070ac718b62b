"""MPIs without a file of their own: what they say of themselves, so that none is taken for another.

Many MPIs are made from MPICH or Open MPI and keep their launcher, or the words of their wrappers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.mpis.family import Expression, search_line


@dataclass(frozen=True)
class Stranger:
    """An MPI that the suite cannot drive.

    :param name: as it calls itself.
    :param version: empty if it does not say one.
    """

    name: str
    version: str


@dataclass(frozen=True)
class Known:
    """The signs of an MPI that Assay knows by name only.

    :param says: what it says of itself by MPI_Get_library_version, which its library holds as text,
        or by a command; the group is its version.
    :param modules: names of its environment modules, as those of a family.
    """

    says: Expression
    modules: Expression


KNOWN = {
    'Cray MPICH': Known(r'CRAY MPICH version (\d[\w.]*)', 'cray-mpich'),
    'MVAPICH2': Known(
        r'MVAPICH2\S* [Vv]ersion *:?\s*(\d[\w.]*)|^MVAPICH2\S* (\d[\w.]*)', 'mvapich2x?'
    ),
    'ParaStation MPI': Known(
        r'ParaStation MPI (?:[Vv]ersion:?\s*)?(\d[\w.-]*)|^MPICH Device:\s+psp|libpscom',
        'psmpi|parastation-?(?:mpi)?',
    ),
    'IBM Spectrum MPI': Known(
        r'Spectrum MPI(?:\)|:)\s*(\d[\w.]*)|IBM_SPECTRUM_MPI_(\d[\d.]*\d)',
        '(?:ibm-)?spectrum-?mpi|smpi',
    ),
    'HPE MPT': Known(r'(?:HPE|SGI) H?MPT (\d[\w.]*)', '(?:hpe-|sgi-)?h?mpt'),
    'Fujitsu MPI': Known(r'FUJITSU MPI Library (\d[\w.]*)', 'fjmpi'),
    'IBM Platform MPI': Known(r'Platform MPI (\d[\w.]*)', '(?:ibm-)?platform-?mpi'),
    'Bullx MPI': Known(r'Bullx? MPI (\d[\w.]*)', 'bullx-?mpi|openmpi-bull'),
}

#: Commands that describe them, beside those of families.
COMMANDS = (('mpiname', '-a'),)

#: Their C and C++ wrappers that are not called mpicc.
WRAPPERS = {'mpifcc': 'mpiFCC', 'mpixlc': 'mpixlC'}

# How wrappers say whose they are: those made from MPICH's, Intel's, and those made from Open MPI's.
_OF_WRAPPERS = (
    r'^mpi\S+ for (?:the )?(\S.*?)(?: version)? (\d\S*)',
    r'^(?:\S*/)?mpi\S+: (\S.*?) v?(\d\S*) \(Language: ',
)
# Of a launcher made from Open MPI's.
_OF_LAUNCHERS = (r'^mpi\w+ \((\S.*?)\) v?(\d\S*)',)


def of_words(words: str) -> Stranger | None:
    """The MPI in these words, if it has no file here and is known by its name."""
    for name, one in KNOWN.items():
        if found := search_line(one.says, words):
            return Stranger(name, next(filter(None, found.groups()), ''))
    return None


def of_module(module: str) -> Stranger | None:
    """The MPI of a module, by the module's name, whose last part is likely to be the version."""
    for name, one in KNOWN.items():
        if re.search(rf'(?:^|/)(?:{one.modules})\d*(?:[-_./]|$)', module, re.IGNORECASE):
            version = re.search(r'[/-]v?(\d[\w.]*)$', module)
            return Stranger(name, version[1] if version else '')
    return None


def of_wrapper(words: str) -> Stranger | None:
    """The MPI of a wrapper that no family knows."""
    return _named(_OF_WRAPPERS, words)


def of_launcher(words: str) -> Stranger | None:
    """The MPI of a launcher that no family knows."""
    return _named(_OF_LAUNCHERS, words)


def in_library(content: bytes) -> Stranger | None:
    """Whose library this is, as far as :func:`of_words` can tell."""
    for mark in _MARKS:
        if (place := content.find(mark)) >= 0:
            line = re.split(rb'[\0\n]', content[place : place + 200])[0]
            if stranger := of_words(line.decode('latin-1')):
                return stranger
    return None


# Words of KNOWN that a library holds: to search for them takes a hundredth of the time.
_MARKS = (
    *(b'CRAY MPICH', b'MVAPICH2', b'ParaStation MPI', b'libpscom', b'IBM_SPECTRUM', b'HPE MPT'),
    *(b'HPE HMPT', b'SGI MPT', b'FUJITSU MPI', b'Platform MPI'),
)


def _named(expressions: tuple[Expression, ...], words: str) -> Stranger | None:
    for says in expressions:
        if found := search_line(says, words):
            return Stranger(found[1], found[2])
    return None
