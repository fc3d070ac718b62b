"""Tools of others: what they print, and those that give no answer."""

from __future__ import annotations

import pytest

from assay import tools


def test_what_a_tool_prints_need_not_be_text():
    asked = tools.ask(['sh', '-c', r"cat; printf '\351\n'; echo no >&2; exit 3"], given='a')
    assert (asked.stdout, asked.stderr, asked.returncode) == ('a\ufffd\n', 'no\n', 3)


def test_a_tool_that_hangs():
    with pytest.raises(tools.NoAnswerError, match=r'^sleep 60: no answer in 0.1 s$'):
        tools.ask(['/bin/sleep', '60'], 0.1)
    assert tools.output_of_tool(['sh', '-c', 'echo begun; exec sleep 60'], 0.1) == ''


def test_a_tool_that_is_missing(tmp_path):
    with pytest.raises(tools.NoAnswerError, match=r'^nm: No such file'):
        tools.ask([tmp_path / 'nm', '-D'])
    assert tools.output_of_tool([tmp_path / 'nm']) == ''
