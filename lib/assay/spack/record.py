"""What is recorded of a package that Spack has installed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.machine.provenance import Provenance


@dataclass(frozen=True)
class Build:
    """A package as Spack has installed it.

    :param sources: checksum of the sources of this checkout that it was made from; empty for
        others' packages.
    :param files: the checksums of its programs and libraries, by their paths below the prefix.
    """

    prefix: Path
    sources: str
    files: Mapping[str, str]
    provenance: Provenance

    def path(self, name: str) -> Path:
        """The absolute path of a program or a library."""
        return self.prefix / ('lib' if '.so' in name else 'bin') / name

    def changed(self) -> str:
        """A file that is gone, or is not what Spack installed there; empty if there is none."""
        for name, known in self.files.items():
            try:
                content = (self.prefix / name).read_bytes()
            except OSError:
                return name
            if _checksum(content) != known:
                return name
        return ''

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {'prefix': str(self.prefix)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Build:
        return cls(
            prefix=Path(record['prefix']),
            sources=record['sources'],
            files=dict(record['files']),
            provenance=Provenance(**record['provenance']),
        )


def checksums(prefix: Path, files: Iterable[Path]) -> dict[str, str]:
    """What :attr:`Build.files` has of files below a prefix."""
    return {str(path.relative_to(prefix)): _checksum(path.read_bytes()) for path in files}


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
