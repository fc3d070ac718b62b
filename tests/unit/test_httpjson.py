"""Figures that a plain ReFrame sends to an HTTP server, and servers that are not there."""

import json
import os
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from reframe.core import logging
from reframe.core.exceptions import ConfigError

from assay import paths
from assay.running import httpjson
from assay.running.reframe_log import complaints, without_colours

TOYS = Path(__file__).parents[1] / 'golden' / 'reports'


class Server(ThreadingHTTPServer):
    """Keeps what was posted; answers with a code, or hangs up without one."""

    def __init__(self, code):
        super().__init__(('127.0.0.1', 0), Handler)
        self.code, self.posted = code, []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers['Content-Length'])
        self.server.posted.append((self.path, json.loads(self.rfile.read(length))))
        if self.server.code:
            self.send_response(self.server.code)
            self.send_header('Content-Length', '0')
            self.send_header('Location', '/elsewhere')  # which a redirect needs
            self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def serve():
    servers = []

    def start(code):
        servers.append(server := Server(code))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def reframe(folder, port):
    """The log of a plain ReFrame with our configuration that ran two small cases."""
    ended = subprocess.run(
        [
            *(paths.VENV_BIN / 'reframe', '-C', paths.CONFIG / 'common.py'),
            *('-C', TOYS / 'toy_system.py', '--system=toy', '-c', TOYS / 'toys.py'),
            *('-n', '^Passed', '-r', '--prefix', folder, '--perflogdir', folder),
        ],
        env=os.environ
        | {
            httpjson.VARIABLE: f'http://name:s3cret@127.0.0.1:{port}/assay/_doc',
            'ASSAY_RUN': str(folder),
            'PYTHONPATH': str(paths.ROOT / 'lib'),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = without_colours((ended.stdout + ended.stderr).splitlines())
    assert complaints(lines, set(), set(), '') == []
    assert 's3cret' not in ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def test_a_server_gets_each_figure(serve, tmp_path):
    server = serve(201)
    reframe(tmp_path, server.server_port)
    assert {path for path, _ in server.posted} == {'/assay/_doc'}
    figures = [figure for _, figure in server.posted]
    assert [figure['case'].split()[0] for figure in figures] == ['Passed', 'Passed']
    # The cases run beside each other, and either may end first.
    first = min(figures, key=lambda figure: figure['fabric'])
    assert (first['system'], first['partition'], first['environment']) == ('toy', 'node', 'gnu')
    assert (first['figure'], first['value'], first['unit']) == ('latency', 42.5, 'us')
    assert (first['verdict'], first['fabric'], first['layout']) == ('pass', 'shm', 'packed')


def test_a_server_that_is_not_there_fails_no_run(tmp_path):
    with socket.socket() as deaf:  # nobody else gets its port
        deaf.bind(('127.0.0.1', 0))
        port = deaf.getsockname()[1]
        assert f'could not connect to server 127.0.0.1:{port}' in reframe(tmp_path, port)


def test_a_server_that_takes_nothing_is_asked_once(serve, tmp_path):
    server = serve(401)
    assert 'httpjson: no more figures are sent' in reframe(tmp_path, server.server_port)
    assert len(server.posted) == 1


@pytest.fixture
def record(monkeypatch):
    """Of a figure, before one was refused."""
    monkeypatch.setattr(httpjson, '_gone', False)
    record = type('Record', (), {})()
    record.check_perf_var, record.check_perf_value = 'latency', float('nan')
    return record


@pytest.mark.parametrize('code', [302, None])
def test_a_server_that_sends_elsewhere_or_hangs_up_is_asked_once(serve, record, monkeypatch, code):
    server = serve(code)
    monkeypatch.setenv(httpjson.VARIABLE, f'http://127.0.0.1:{server.server_port}')
    for _ in range(2):
        httpjson.send(record, None, None)
    assert httpjson._gone
    assert len(server.posted) == 1


def test_a_server_that_never_answers_holds_up_nothing(record, monkeypatch):
    """It takes connections, as one whose process is stuck does."""
    monkeypatch.setattr(httpjson, 'PATIENCE', 0.2)
    with socket.create_server(('127.0.0.1', 0)) as stuck:
        monkeypatch.setenv(httpjson.VARIABLE, f'http://127.0.0.1:{stuck.getsockname()[1]}')
        httpjson.send(record, None, None)
        assert httpjson._gone
        heard, _ = stuck.accept()
        with heard:
            heard.settimeout(10)
            assert b'"value": null' in heard.recv(10_000)


LONG = 'a' * 64


@pytest.mark.parametrize('host', ['', f'{LONG}.org', '[::1', '127.0.0.1:1', '\u20ac@'])
def test_a_url_that_cannot_be_used_fails_no_run_and_is_not_told(host, record, monkeypatch):
    told = []
    logger = type('Logger', (), {'warning': told.append})
    monkeypatch.setattr(logging, 'getlogger', lambda: logger)
    monkeypatch.setenv(httpjson.VARIABLE, f'http://name:s3cret@{host}/')
    for _ in range(2):
        httpjson.send(record, None, None)
    (sentence,) = told
    assert sentence.startswith('httpjson: no more figures are sent: ')
    assert 's3cret' not in sentence


@pytest.mark.parametrize('host', [f'{LONG}.org', '[::1', 'a..b'])
def test_a_host_on_which_reframe_breaks_is_an_error_of_its_configuration(host, monkeypatch):
    monkeypatch.setenv(httpjson.VARIABLE, f'http://name:s3cret@{host}/')
    with pytest.raises(ConfigError, match='its host is no name and no address') as caught:
        httpjson.handlers()
    assert 's3cret' not in str(caught.value)


def test_without_the_variable_nothing_is_sent(monkeypatch):
    monkeypatch.delenv(httpjson.VARIABLE, raising=False)
    assert httpjson.handlers() == []
