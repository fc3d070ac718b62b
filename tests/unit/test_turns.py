"""What keeps nodes of the virtual cluster that share a CPU from waiting for each other."""

import pytest

from assay.vcluster import turns


@pytest.mark.parametrize(
    ('content', 'seconds'),
    [
        ('1500000000\n', 1.5),  # cpuacct.usage of version 1
        ('usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n', 1.5),  # cpu.stat of 2
    ],
)
def test_the_time_that_a_node_has_had(tmp_path, content, seconds):
    (tmp_path / 'used').write_text(content)
    assert turns.seconds_used(str(tmp_path / 'used')) == seconds


def test_a_node_that_is_down_has_had_none(tmp_path):
    assert turns.seconds_used(str(tmp_path / 'used')) == 0
