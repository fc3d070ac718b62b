"""What is recorded of a package that Spack has installed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.machine.provenance import Provenance


@dataclass(frozen=True)
class Build:
    """A package as Spack has installed it.

    :param sources: checksum of the sources of this checkout that it was made from; empty for
        others' packages.
    :param files: its programs and libraries, relative to the prefix.
    """

    prefix: Path
    sources: str
    files: tuple[str, ...]
    provenance: Provenance

    def path(self, name: str) -> Path:
        """The absolute path of a program or a library."""
        return self.prefix / ('lib' if '.so' in name else 'bin') / name

    def is_whole(self) -> bool:
        """Whether its files are there."""
        return all((self.prefix / name).is_file() for name in self.files)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {'prefix': str(self.prefix), 'files': list(self.files)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Build:
        return cls(
            prefix=Path(record['prefix']),
            sources=record['sources'],
            files=tuple(record['files']),
            provenance=Provenance(**record['provenance']),
        )
