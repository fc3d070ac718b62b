"""Which tests one worker runs one after the other: docs/testing.md tells why."""

from __future__ import annotations

#: Of whole runs those that use the virtual cluster, of which a machine has one; and bundles, which
#: are made of a checkout with nothing added, as `assay init` adds a file.
ON_THE_CLUSTER = ('test_closed_network.py', 'test_init.py', 'test_vcluster.py')

#: It starts no run.
IN_THE_BROWSER = 'test_report_in_a_browser.py'


def scope(file: str) -> str:
    """The name of all tests that are not beside each other, by a file of them.

    They are those of a file, which share what they build, or what shares more than that.
    """
    folder, _, name = file.rpartition('/')
    if not folder.endswith('e2e') or name == IN_THE_BROWSER:
        return file
    return 'cluster' if name in ON_THE_CLUSTER else 'e2e'
