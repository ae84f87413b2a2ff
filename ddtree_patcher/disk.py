"""The disk as the writer sees it: every system call by which an installation or a state folder is read or changed.

The transaction and the store reach the disk through this module alone, and it makes each call through :func:`_call`, so
that a test can stand between any two of them. What must survive a power cut says so: a new file is synced before it
gets its name, a folder that is made or removed is synced in the folder that holds it, and all other names with
:func:`sync_folder`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from . import attributes
from .attributes import Attributes

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_File = TypeVar("_File", int, Path)


def _call(function: Callable[_Arguments, _Result], *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
    """Make one system call."""
    return function(*args, **options)


def read(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none."""
    try:
        return _call(Path.read_bytes, path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def status(path: Path) -> os.stat_result | None:
    """What is behind a path, links followed; None where there is nothing."""
    try:
        return _call(os.stat, path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_folder(path: Path) -> bool:
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        return sorted(_call(os.listdir, folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def make_file(path: Path, data: bytes, given: Attributes, *, mtime_ns: int | None = None) -> None:
    """A new file, synced, in place of an old one of that name. ``mtime_ns`` None: now."""
    unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = _call(os.open, path, flags, 0o600)
    try:
        _give(descriptor, given, path)
        _write_all(descriptor, data)
        if mtime_ns is not None:
            _call(os.utime, descriptor, ns=(mtime_ns, mtime_ns))
        _call(os.fsync, descriptor)
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise
    _call(os.close, descriptor)


def _give(descriptor: int, given: Attributes, path: Path) -> None:
    """Owner first, which may clear bits of the mode, and the mode last, which an access list changes."""
    _give_owner(os.fchown, descriptor, _call(os.fstat, descriptor), given, path)
    if given.extended is not None:
        _give_extended(descriptor, given.extended)
    _call(os.fchmod, descriptor, given.mode)


def _give_owner(
    call: Callable[[_File, int, int], None], file: _File, now: os.stat_result, given: Attributes, path: Path
) -> None:
    """The owner, where it is another one. Root may lack the right, or be root of a few users only."""
    if given.owner is None or given.owner == (now.st_uid, now.st_gid):
        return
    try:
        _call(call, file, *given.owner)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EINVAL):
            raise
        if given.kept:
            user, group = given.owner
            words = f"what is there belongs to user {user}, group {group}, and only they or root can leave it theirs"
            raise PermissionError(errno.EPERM, words, str(path)) from None


def _give_extended(descriptor: int, wanted: Mapping[str, bytes]) -> None:
    there = attributes.extended(descriptor)
    for name in there:
        if name not in wanted and attributes.is_ours(name):  # an access list that the folder gives to new files
            _call(os.removexattr, descriptor, name)
    for name, value in wanted.items():
        if there.get(name) != value:
            try:
                _call(os.setxattr, descriptor, name, value)
            except OSError:
                if attributes.is_ours(name):
                    raise


def _write_all(descriptor: int, data: bytes) -> None:
    """All of it, however little the system takes at a time."""
    rest = memoryview(data)
    while rest:
        taken = _call(os.write, descriptor, rest)
        if taken <= 0:
            raise OSError(errno.EIO, "nothing was written")
        rest = rest[taken:]


def set_metadata(path: Path, mode: int, mtime_ns: int) -> None:
    """The permission bits and the time of a file whose content stays, durably."""
    descriptor = _call(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call(os.fchmod, descriptor, mode)
        _call(os.utime, descriptor, ns=(mtime_ns, mtime_ns))
        _call(os.fsync, descriptor)
    finally:
        os.close(descriptor)


def replace(source: Path, target: Path) -> None:
    """Give a file the name of another one, which is gone with that. Durable after :func:`sync_folder`."""
    _call(os.replace, source, target)


def unlink(path: Path) -> None:
    """No file of that name any more. A read-only disk, which refuses to remove nothing, is not asked to."""
    if os.path.lexists(path):
        _call(os.unlink, path)


def make_folder(path: Path, like: Path | None = None) -> None:
    """A folder, and those above it, durably, each as the one that it is in, or as one in ``like``.

    What is there already stays as it is.
    """
    if is_folder(path):
        return
    if os.path.lexists(path):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(path))
    make_folder(path.parent, like)
    given = attributes.below(like or path.parent)
    _call(os.mkdir, path, given.mode)
    now = _call(os.stat, path)
    _give_owner(os.chown, path, now, given, path)
    if stat.S_IMODE(now.st_mode) != given.mode:  # the umask took something away
        _call(os.chmod, path, given.mode)
    sync_folder(path.parent)


def try_to_write(folder: Path) -> None:
    """Make a file that never has a name; raises what the system says against it."""
    os.close(_call(os.open, folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def remove_folder(path: Path) -> None:
    """No folder of that name any more, durably; one that is not empty stays."""
    if not is_folder(path):
        return
    try:
        _call(os.rmdir, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = _call(os.open, folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _call(os.fsync, descriptor)
    finally:
        os.close(descriptor)
