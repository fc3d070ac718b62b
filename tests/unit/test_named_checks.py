"""Which files ReFrame reads for what `-n` names."""

import pytest

from assay import paths
from assay.running import reframe_options, selection

ALL = []


@pytest.mark.parametrize(
    ('arguments', 'names'),
    [
        (['-n', '^Ring'], ['ring']),
        (['-n', '^Ring%fabric=shm'], ['ring']),
        (['-n', '^Ring %fabric=(shm|tcp) %layout=packed'], ['ring']),
        (['-n', '^(Ring|Halo)@generic'], ['halo', 'ring']),
        (['-n', '^Ring', '--name=^Halo%'], ['halo', 'ring']),
        (['-n', '^Mini'], ['minife', 'minighost', 'minimd']),
        (['-n', '^Ring', '-S', 'HPL.order=100', '-S', 'num_tasks=2'], ['hpl', 'ring']),
        # Others may be meant as well.
        ([], ALL),
        (['-n', 'Ring'], ALL),
        (['-n', '%fabric=shm'], ALL),
        (['-n', '^Ring', '-n', 'Halo'], ALL),
        (['-n', '^Ring|Halo'], ALL),
        (['-n', '^Ring%|^Halo'], ALL),
        (['-n', r'^Ring \(|Halo\)'], ALL),
        (['-n', '^Ring [(]|Halo[)]'], ALL),
        (['-n', '^Rings?%'], ALL),
        (['-n', '^Rings*'], ALL),
        (['-n', '^Rings{0}%'], ALL),
        (['-n', '(?i)^ring'], ALL),
        # What is not there is told with the names of all that is.
        (['-n', '^Rng'], ALL),
        # Somebody else's checks.
        (['-n', '^Ring', '-c', 'elsewhere'], ALL),
    ],
)
def test_only_what_is_named_is_read(arguments, names):
    files = selection.files_of(reframe_options.read_options(arguments), paths.CHECKS)
    assert [path.stem for path in files] == names
