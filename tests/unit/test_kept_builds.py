"""Builds that tests share, in a folder that they share with runs."""

import os

from building import KEPT, remove_old


def test_old_builds_go_and_runs_stay(tmp_path):
    """The folder of a session, in which its runs are under way, is older than what it builds."""
    names = ['20576-vm', *(f'{number:016x}' for number in range(KEPT + 1))]
    for age, name in enumerate(reversed(names)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    remove_old(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted({*names} - {f'{0:016x}'})
