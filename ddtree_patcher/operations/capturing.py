"""``snapshot capture``: the watched files of a wheel or an installation, as a snapshot file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..digest import Read
from ..model import ExitCode, FileState, FileStatus, Report
from ..output import write_output
from ..patchset import load
from ..pristine import Pristine
from ..snapshot import Absent, Snapshot, to_bytes
from ..snapshot import capture as take
from ..snapshot_sources import read_wheel
from .session import Session


def capture(session: Session, wheel: str, out: Path, *, text: bool, also: Sequence[str] = ()) -> Report:
    """Fingerprint every file that the patchset watches, and what those named in ``also`` do.

    With ``text`` keep the files themselves beside the snapshot.
    """
    patchsets = [session.loaded.patchset, *(load(name).patchset for name in also)]
    watched = sorted({path for patchset in patchsets for path in patchset.watched()})
    read: Read
    if wheel:
        distribution, version, read, _ = read_wheel(Path(wheel))
    else:
        look = Pristine(session.installation, session.store, session.state())
        distribution, version, read = session.installation.distribution, session.installation.version, look.read
    snapshot = take(distribution, version or "unknown", watched, read)
    write_output(out, to_bytes(snapshot))
    if text:
        for path in _present(snapshot):
            write_output(out.with_suffix("") / path, read(path))
    files = tuple(
        FileState(path, FileStatus.PRISTINE, False, item.sha256, item.sha256, item.sha256)
        for path, item in snapshot.files.items()
        if not isinstance(item, Absent)
    )
    return Report("snapshot", ExitCode.OK, "ok", patchset=session.identity, files=files, extra={"out": str(out)})


def _present(snapshot: Snapshot) -> list[str]:
    return [path for path, item in snapshot.files.items() if not isinstance(item, Absent)]
