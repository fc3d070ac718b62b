"""Writing files that others read at the same time."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write so that a reader sees the old content or the new, never a part.

    A file that is there keeps its mode and, where that is permitted, its owner; a symbolic link
    stays one. Anything else, such as ``/dev/stdout``, is written to.

    :raises OSError: if that cannot be; the old content stays, and nothing is left beside it.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    try:
        with draft.open('wb') as file:
            with suppress(FileNotFoundError):
                # Before there is anything in it that not everybody may read.
                keep_access(path.stat(), file.fileno())
            file.write(data)
        draft.replace(path)
    finally:  # as where the disk is full
        draft.unlink(missing_ok=True)


def keep_access(old: os.stat_result, new: int) -> None:
    """Give an open file the mode of another and, where that is permitted, its owner and group.

    :param new: descriptor of a file of this user.
    """
    # A group of one's own can be given where an owner cannot; a container may not know either.
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError):
            os.fchown(new, owner, group)
    os.fchmod(new, stat.S_IMODE(old.st_mode))  # last: a change of owner takes bits of it away
