"""What lock files pin."""

import re
from importlib import metadata

from packaging.requirements import Requirement

from assay import paths


def test_what_is_needed_with_extras_is_pinned_with_them():
    """pip before 23.1 takes the newest of such a package, which has no checksum, not the pinned."""
    pinned = (paths.ROOT / 'requirements-test.lock').read_text()
    names = set(re.findall(r'^[\w.-]+', pinned, re.MULTILINE))
    needed = {
        (requirement.name, f'{requirement.name}[{",".join(sorted(requirement.extras))}]==')
        for one in metadata.distributions()
        for requirement in map(Requirement, one.requires or [])
        if requirement.extras
        and requirement.name in names
        and (not requirement.marker or requirement.marker.evaluate({'extra': ''}))
    }
    assert {'coverage', 'urllib3'} <= {name for name, _ in needed}
    assert not [pin for _, pin in needed if f'\n{pin}' not in pinned]
