"""Owner, mode, access list and extended attributes of a file that is to be made.

They are those of the file that it replaces, or of its neighbours: a naive rename loses them all (python-patch #18,
loguccino #17, Path-Tiny #221).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ACL = "system.posix_acl_access"
_NONE = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # this file system has no such thing


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a new file, or a new folder, has beside its content."""

    mode: int
    owner: tuple[int, int] | None = None  # user and group; None: whoever makes it
    kept: bool = False  # whether it is another's file without that owner: then it must not be made
    extended: Mapping[str, bytes] | None = None  # None: whatever its folder gives to new files


def of_file(path: Path, mode: int = 0) -> Attributes:
    """Those of a file, but ``mode`` where one is given."""
    status = path.stat()
    owner = (status.st_uid, status.st_gid)
    return Attributes(mode or stat.S_IMODE(status.st_mode), owner, kept=True, extended=extended(path))


def beside(folder: Path, mode: int = 0) -> Attributes:
    """Of a new file: whoever may read and write its folder may do so with it, but never all. Root lends a hand."""
    status = folder.stat()
    return Attributes(mode or status.st_mode & 0o664, _owner(status))


def below(folder: Path) -> Attributes:
    """Of a new folder: those of the one that it is made in, and never for all to write."""
    status = folder.stat()
    if status.st_mode & stat.S_ISVTX:  # of a folder like /tmp nothing is to be taken over
        return Attributes(0o755)
    return Attributes(0o700 | (status.st_mode & (0o775 | stat.S_ISGID)), _owner(status))


def extended(file: Path | int) -> Mapping[str, bytes]:
    """A file's extended attributes, its access list among them; none where the file system has none."""
    try:
        return {name: os.getxattr(file, name) for name in os.listxattr(file)}
    except OSError as error:
        if error.errno in _NONE:
            return {}
        raise


def is_ours(name: str) -> bool:
    """Whether an attribute is one that users set; the system gives the others, and may not let them be set."""
    return name == _ACL or name.startswith("user.")


def _owner(status: os.stat_result) -> tuple[int, int] | None:
    return (status.st_uid, status.st_gid) if os.geteuid() == 0 else None
