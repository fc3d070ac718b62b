"""The keys that acceptances are signed with: those of Assay, and those of OpenSSH."""

import base64
import shutil
import subprocess
from importlib.util import find_spec

import pytest

from assay import AssayError
from assay.acceptance.signatures import fingerprint, make_keys, private_key, public_key

SECRET = 'correct horse'

needs_ssh_keygen = pytest.mark.skipif(not shutil.which('ssh-keygen'), reason='needs ssh-keygen')


def nobody():
    pytest.fail('nobody has to be asked for a passphrase')


def ssh_keygen(*options):
    ended = subprocess.run(['ssh-keygen', *options], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def print_of(key):
    return fingerprint(key.public_key())


def test_one_with_a_passphrase(tmp_path):
    path = tmp_path / 'buyer.key'
    told = fingerprint(public_key(make_keys(path, SECRET)))
    assert print_of(private_key(path, lambda: SECRET)) == told
    with pytest.raises(AssayError, match='no private key, or not of this passphrase'):
        private_key(path, lambda: 'wrong')


def test_one_of_another_kind_has_no_passphrase(tmp_path):
    """As of a hardware key, of which cryptography knows nothing."""

    def field(data):
        return len(data).to_bytes(4, 'big') + data

    kind = field(b'sk-ssh-ed25519@openssh.com')
    fields = [field(b'none'), field(b'none'), field(b''), (1).to_bytes(4, 'big')]
    fields += [field(kind + field(bytes(32))), field(bytes(8) + kind + field(bytes(32)))]
    text = base64.encodebytes(b'openssh-key-v1\0' + b''.join(fields)).decode()
    path = tmp_path / 'key'
    path.write_text(
        f'-----BEGIN OPENSSH PRIVATE KEY-----\n{text}-----END OPENSSH PRIVATE KEY-----\n'
    )
    with pytest.raises(AssayError, match='key: a key of a kind that cannot be read here: make one'):
        private_key(path, nobody)


@needs_ssh_keygen
def test_one_of_openssh(tmp_path):
    path = tmp_path / 'key'
    ssh_keygen('-q', '-t', 'ed25519', '-N', '', '-f', path)
    told = fingerprint(public_key(path.with_name('key.pub')))
    assert print_of(private_key(path, nobody)) == told
    assert told in ssh_keygen('-l', '-f', path)


@needs_ssh_keygen
@pytest.mark.skipif(find_spec('bcrypt') is not None, reason='with bcrypt it can be read')
def test_one_of_openssh_with_a_passphrase(tmp_path):
    """Nobody is asked for a passphrase in vain, and what the sentence says does."""
    path, copy = tmp_path / 'key', tmp_path / 'copy'
    ssh_keygen('-q', '-t', 'ed25519', '-N', SECRET, '-f', path)
    with pytest.raises(AssayError) as raised:
        private_key(path, nobody)
    assert str(raised.value) == (
        f"{path}: a key with a passphrase in OpenSSH's form cannot be read here: make one by "
        f'`assay accept key FILE`, which takes a passphrase as well, or sign with a copy without '
        f"one (`ssh-keygen -p -N '' -f COPY`) that you remove afterwards"
    )
    shutil.copy(path, copy)
    ssh_keygen('-p', '-P', SECRET, '-N', '', '-f', copy)
    assert print_of(private_key(copy, nobody)) == fingerprint(public_key(path.with_name('key.pub')))
