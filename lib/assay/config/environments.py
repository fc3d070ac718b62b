"""ReFrame's environments for the MPIs that are found on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from assay.config.fabrics import load_catalogue
from assay.machine.mpi import Mpi, find_imb
from assay.machine.wheels import NEEDED
from assay.mpis import FAMILIES

#: Without these not every MPI starts as root; in a container root is the usual user.
AS_ROOT = [[*one] for family in FAMILIES.values() for one in family.as_root.items()]

#: Set by `assay run --with spack`: the packages that Spack builds for checks, with commas between.
WITH_SPACK = 'ASSAY_WITH_SPACK'

#: Flags that builds add to those of their environment, for C and C++, or `C: -O2; C++: -O3`: a
#: setting of a comparison.
MORE_FLAGS = 'ASSAY_MORE_FLAGS'

#: The folder whose sources are built instead of this checkout's own: a setting of a comparison.
OTHER_SOURCES = 'ASSAY_OTHER_SOURCES'

#: What Spack is to choose of packages, as `cmake@=3.25.1; assay cflags="-O1"`: a setting of a
#: comparison.
OTHER_SPECS = 'ASSAY_OTHER_SPECS'

#: For this processor: the machine that builds is the machine that runs. Spack tunes for the target
#: of the spec. How far to optimise stands in sources/CMakeLists.txt, for both.
TUNED = ['-march=native']

#: Our package: what most checks run.
OURS = 'assay'

#: So begins the feature of the one environment of a partition that measures its nodes; a fabric
#: follows.
MEASURES_NODES = 'measures-nodes-by-'


def feature(package: str) -> str:
    """The feature of an environment for which Spack builds the package."""
    return 'spack' if package == OURS else f'spack-{package}'


def tcp_over(interface: str) -> list[list[str]]:
    """The variables that keep every MPI's TCP and launcher on a network interface."""
    names = dict.fromkeys(name for family in FAMILIES.values() for name in family.interface)
    return [[name, interface] for name in names]


def environs(mpis: Iterable[Mpi]) -> list[str]:
    """The ``environs`` of a partition of this machine: those first that stay when others come.

    Its nodes are measured by the first, whose history is to go on when somebody installs or loads
    another MPI.
    """
    lasting = {'debian': 0, 'wheel': 1}
    in_order = sorted(
        mpis, key=lambda mpi: (lasting.get(mpi.source, len(lasting)), mpi.name not in NEEDED)
    )
    return [mpi.name for mpi in in_order] or ['builtin']


def spack_specs(mpis: Iterable[Mpi]) -> dict[str, str]:
    """How Spack calls MPIs, by their names: those that it can build for, and can tell apart.

    The first of several of one family and version counts.
    """
    names: dict[str, str] = {}
    for mpi in mpis:
        if not mpi.fault and (package := mpi.kind.spack):
            names.setdefault(f'{package}@={mpi.version}', mpi.name)
    return {name: spec for spec, name in names.items()}


def environment(mpi: Mpi, spack_spec: str | None = None) -> dict[str, Any]:
    """The environment of an MPI, as ``environments`` of a configuration has it.

    :param spack_spec: what Spack calls it; None if Spack cannot build for it.
    """
    if mpi.fault:
        return _without_answer(mpi)
    # The fabrics that this build can use; reasons for the others: `assay doctor`.
    catalogue = load_catalogue()
    fabrics = [name for name in catalogue.fabrics if catalogue.no_recipe(name, mpi) is None]
    features, extras = ['mpi', mpi.family, *fabrics], {'family': mpi.family, 'version': mpi.version}
    if WITH_SPACK in os.environ and spack_spec:
        features += [feature(package) for package in os.environ[WITH_SPACK].split(',')]
        extras['spack'] = spack_spec
    # IMB-MPI1, where there is one that runs on the MPI.
    if imb := find_imb(mpi):
        features.append('imb')
        extras |= {'imb': str(imb.program), 'imb_libraries': str(imb.libraries)}
    return {
        'name': mpi.name,
        'cc': mpi.cc,
        'cxx': mpi.cxx or '',
        'ftn': '',
        'cflags': TUNED,
        'cxxflags': TUNED,
        'modules': list(mpi.modules),
        'env_vars': [['PATH', f'{mpi.bindir}:$PATH'], *map(list, mpi.env.items())],
        'features': features,
        'extras': extras,
    }


def _without_answer(mpi: Mpi) -> dict[str, Any]:
    """The environment of an MPI that does not answer: of every check that it may be for.

    What builds for it fails, with the reason (``assay.checks.build``).
    """
    catalogue = load_catalogue()
    family = mpi.family or 'unknown'
    fabrics = [
        name for name in catalogue.fabrics if not mpi.family or catalogue.recipe(name, mpi.family)
    ]
    return {
        'name': mpi.name,
        'cc': mpi.cc,
        'features': ['mpi', family, *fabrics],
        'extras': {'family': family, 'fault': mpi.fault},
    }


def stand_in_for(system: str) -> None:
    """Let a configuration define a system that ReFrame's own has too, without a warning.

    Called by the file that defines it, as ReFrame loads it. Any other warning comes through, also
    that of this system where a third file defines it.
    """
    from reframe.core.logging import getlogger

    warning = f"redefinition of system '{system}': already defined in '<builtin>'"
    # None where nobody hears of warnings. ReFrame makes another as soon as all files are loaded.
    if (logger := getlogger().logger) is not None:
        logger.addFilter(lambda record: warning not in record.getMessage())
