"""Files that are written whole."""

import json
import math
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pytest

from assay.files import append_line, json_text, whole_lines, write_whole


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_symbolic_link_stays_one(tmp_path):
    real = tmp_path / 'elsewhere' / 'x.yaml'
    real.parent.mkdir()
    link = tmp_path / 'x.yaml'
    link.symlink_to('elsewhere/x.yaml')
    for content in ('new', b'newer'):  # the first where there is nothing yet
        write_whole(link, content)
        assert os.readlink(link) == 'elsewhere/x.yaml'
        assert real.read_bytes() == (content if isinstance(content, bytes) else content.encode())
    assert [*real.parent.iterdir()] == [real]
    assert [*tmp_path.glob('x*')] == [link]


@pytest.mark.parametrize('wanted', [0o600, 0o664, 0o444])
def test_a_file_keeps_its_mode(tmp_path, wanted):
    path = tmp_path / 'x.yaml'
    path.write_text('old')
    path.chmod(wanted)
    write_whole(path, 'new')
    assert (path.read_text(), mode(path)) == ('new', wanted)


def test_a_new_file_has_the_mode_of_any(tmp_path):
    (tmp_path / 'any').touch()
    write_whole(tmp_path / 'new', 'new')
    assert mode(tmp_path / 'new') == mode(tmp_path / 'any')


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
def test_a_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / 'x.yaml'
    path.write_text('old')
    os.chown(path, 1234, 4321)
    write_whole(path, 'new')
    assert (path.read_text(), path.stat().st_uid, path.stat().st_gid) == ('new', 1234, 4321)


def test_where_an_owner_cannot_be_given_the_mode_stays(tmp_path, monkeypatch):
    def denied(*_):
        raise PermissionError(1, 'Operation not permitted')

    path = tmp_path / 'x.yaml'
    path.write_text('old')
    path.chmod(0o640)
    monkeypatch.setattr(os, 'fchown', denied)
    write_whole(path, 'new')
    assert (path.read_text(), mode(path)) == ('new', 0o640)


def test_what_is_no_file_stays_what_it_is(tmp_path):
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, 'new')
    assert os.read(reader, 10) == b'new'
    os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, 'new')


def test_a_line_that_was_cut_off_is_none_and_the_next_takes_its_place(tmp_path):
    path = tmp_path / 'new' / 'record.jsonl'
    assert whole_lines(path) == []
    for line in ('é 1', '2'):
        append_line(path, line)
    for torn in (b'3 ', 'é'.encode()[:1]):
        path.write_bytes('é 1\n2\n'.encode() + torn)
        append_line(path, '4')
        assert whole_lines(path) == ['é 1', '2', '4']
    path.write_bytes(path.read_bytes() + b'5 \xc3')
    assert whole_lines(path) == ['é 1', '2', '4'], 'not even if it ends within a character'
    assert path.read_bytes().endswith(b'\n5 \xc3'), 'who reads changes nothing'


def test_those_who_write_the_same_record_lose_no_line(tmp_path):
    path = tmp_path / 'record.jsonl'
    lines = [str(number) * 3000 for number in range(200)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(append_line, path), lines))
    assert sorted(whole_lines(path)) == sorted(lines)


@dataclass(frozen=True)
class Told:
    inner: object


def test_what_json_has_no_word_for_is_told_all_the_same():
    told = [math.nan, math.inf, {2, 1}, (Path('a'), datetime(2026, 1, 2, tzinfo=timezone.utc))]
    plain = [None, None, [1, 2], ['a', '2026-01-02T00:00:00+00:00']]
    assert json.loads(json_text({'of': Told(Told(told))})) == {'of': {'inner': {'inner': plain}}}
    with pytest.raises(TypeError):
        json_text(Told(object()))
