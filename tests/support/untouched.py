"""What users keep in the checkout that tests run in: no test may change a byte of it."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

#: In `.assay`, what is shared with the tests so that nobody builds it twice, and their own.
SHARED = {'builds', 'bundle', 'mpi', 'spack', 'vcluster', 'venv'}
SHARED |= {'coverage', 'lint', 'mypy', 'tests'}
SHARED |= {'install.lock', 'tests.lock', 'tests-gate.lock'}

#: Of a file what changes whenever it is written: no clock is coarse enough to hide all of them.
Trace = tuple[int, int, int, int]


def traces(root: Path) -> dict[Path, Trace]:
    """All files that runs and configurations consist of."""
    state = root / '.assay'
    own = (path for path in state.glob('*') if path.name not in SHARED)
    found = {}
    for start in (*own, root / 'perflogs', root / 'config'):
        for path in (start, *start.rglob('*')):
            if path.is_symlink() or (path.is_file() and '__pycache__' not in path.parts):
                with suppress(FileNotFoundError):  # it is gone by now
                    about = path.lstat()
                    found[path] = about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
    return found


class Watch:
    """Tells which of these files changed, and which tests ran at that time.

    :param root: of the checkout.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.before = root, traces(root)
        self.times: list[tuple[float, float, str]] = []

    def ran(self, test: str, begin: float, end: float) -> None:
        """A phase of a test has ended; seconds since 1970."""
        self.times.append((begin, end, test))

    def changes(self) -> list[str]:
        """A line for each file that changed or is there no more; of a run, one for its folder."""
        return [*dict.fromkeys(self._changes())]

    def _changes(self) -> Iterable[str]:
        now = traces(self.root)
        for path in sorted(now.keys() | self.before.keys()):
            if now.get(path) == self.before.get(path):
                continue
            name = Path(*path.relative_to(self.root).parts[:3])
            if path not in now:
                yield f'{name} is gone'
                continue
            when = now[path][3] / 1e9
            tests = {test: None for begin, end, test in self.times if begin <= when <= end}
            yield f'{name} was written during {", ".join(tests) or "no test"}'
