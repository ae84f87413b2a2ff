"""What the files on disk are, and the pristine bytes beneath them: proved by RECORD, kept by the store."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from .digest import read_from, sha256
from .installation import Installation
from .model import Diagnostic, FileState, FileStatus, InstallationStatus, Severity
from .store import Entry, State, Store


@dataclass(frozen=True, slots=True)
class Finding:
    """One file: what it is, and the pristine bytes of it when they are known."""

    path: str
    status: FileStatus
    current_sha256: str  # empty when there is no file
    pristine_sha256: str  # empty when there is no pristine file, or none is known
    pristine: bytes | None = field(default=None, repr=False)  # None when there is none, or none is known


class Pristine:
    """Looks at files of one installation. With ``allow_drift`` what is on disk counts as the base it is."""

    def __init__(
        self, installation: Installation, store: Store, state: State | None, *, allow_drift: bool = False
    ) -> None:
        self.installation = installation
        self.store = store
        self.state = state
        self.allow_drift = allow_drift
        self.findings: dict[str, Finding] = {}
        self._read = read_from(installation.folder)

    def read(self, path: str) -> bytes:
        """The pristine bytes of a file, for the planner; unproved bytes are read too and stand in ``findings``."""
        finding = self.find(path)
        if finding.pristine is None:
            raise FileNotFoundError(path)
        return finding.pristine

    def glance(self, path: str) -> bytes:
        """The pristine bytes of a file that no plan is built on: where nothing is applied to it, it is as it is."""
        return self.read(path) if self.is_entry(path) else self._read(path)

    def find(self, path: str) -> Finding:
        if path not in self.findings:
            self.findings[path] = self._find(path)
        return self.findings[path]

    def unproved(self) -> list[Finding]:
        """The findings that no plan may be built on: deleted files first, then edited and unknown ones."""
        missing = [
            item for item in self.findings.values() if item.status is FileStatus.MISSING and item.pristine_sha256
        ]
        bad = {FileStatus.FOREIGN} if self.allow_drift else {FileStatus.FOREIGN, FileStatus.UNKNOWN_BASE}
        return missing + [
            item
            for item in self.findings.values()
            if item.status in bad and not (self.allow_drift and self._entry(item.path) is None)
        ]

    def is_entry(self, path: str) -> bool:
        """Whether the applied patchset changed or added this file."""
        return self._entry(path) is not None

    def vouched(self, entry: Entry) -> bool:
        """Whether the pristine bytes that the state remembers of a file are those of this installation.

        RECORD says so; where a row was dropped, or was rewritten to what was applied, the release being the same does.
        A state of another release, or of another environment, is not believed.
        """
        assert self.state is not None
        same = self.state.version == self.installation.version
        recorded = self.installation.recorded_sha256(entry.path)
        if entry.path in self.state.drift:
            return same
        return recorded in ("", entry.pristine_sha256) or (same and recorded == entry.patched_sha256)

    def _entry(self, path: str) -> Entry | None:
        return self.state.entry(path) if self.state else None

    def _find(self, path: str) -> Finding:
        try:
            data = self._read(path)
        except (FileNotFoundError, NotADirectoryError):
            return self._missing(path)
        digest, entry = sha256(data), self._entry(path)
        recorded = self.installation.recorded_sha256(path)
        if entry is not None and not entry.added:
            return self._known(path, data, digest, entry, recorded)
        if entry is not None:
            status = FileStatus.PATCHED if digest == entry.patched_sha256 else FileStatus.FOREIGN
            return Finding(path, status, digest, "")
        if recorded and digest == recorded:
            return Finding(path, FileStatus.PRISTINE, digest, digest, data)
        status = FileStatus.FOREIGN if recorded else FileStatus.UNKNOWN_BASE
        return Finding(path, status, digest, recorded or digest, data)

    def _known(self, path: str, data: bytes, digest: str, entry: Entry, recorded: str) -> Finding:
        vouched = self.vouched(entry)
        if digest == entry.patched_sha256 and vouched:
            return Finding(
                path, FileStatus.PATCHED, digest, entry.pristine_sha256, self.store.get(entry.pristine_sha256)
            )
        if digest == recorded or (vouched and digest == entry.pristine_sha256):
            return Finding(path, FileStatus.WIPED, digest, digest, data)
        if not vouched:
            return Finding(path, FileStatus.FOREIGN, digest, recorded, data)
        # What lies beneath the edit is known: an edited patch must not look like a half upstreamed one.
        return Finding(path, FileStatus.FOREIGN, digest, entry.pristine_sha256, self.store.get(entry.pristine_sha256))

    def _missing(self, path: str) -> Finding:
        entry = self._entry(path)
        if entry is not None and entry.added:
            return Finding(path, FileStatus.WIPED, "", "")
        recorded = self.installation.recorded_sha256(path)
        if entry is not None and entry.pristine_sha256 and self._is_remembered(entry, recorded):
            kept = self.store.get(entry.pristine_sha256)
            return Finding(path, FileStatus.MISSING, "", entry.pristine_sha256, kept)
        return Finding(path, FileStatus.MISSING, "", recorded)

    def _is_remembered(self, entry: Entry, recorded: str) -> bool:
        """Whether a file that is gone is one of this installation, and not one that another release did without."""
        assert self.state is not None
        return self.vouched(entry) and (bool(recorded) or self.state.version == self.installation.version)


def file_state(finding: Finding, state: State | None) -> FileState:
    """A finding beside what the applied patchset made of that file."""
    entry = state.entry(finding.path) if state else None
    return FileState(
        path=finding.path,
        status=finding.status,
        added=bool(entry and entry.added),
        pristine_sha256=entry.pristine_sha256 if entry else finding.pristine_sha256,
        desired_sha256=entry.patched_sha256 if entry else "",
        current_sha256=finding.current_sha256,
    )


def installation_status(
    installation: Installation, store: Store, state: State | None, digest: str, watched: Iterable[str] = ()
) -> tuple[InstallationStatus, tuple[Finding, ...]]:
    """What is there now, from digests alone. ``digest`` is that of the patchset at hand ("" when it is not known)."""
    look = Pristine(installation, store, state)
    paths = [entry.path for entry in state.files] if state else list(watched)
    findings = tuple(look.find(path) for path in paths)
    if store.journal() is not None:
        return InstallationStatus.INTERRUPTED, findings
    kinds = {item.status for item in findings}
    if state is None:
        shipped = [item for item in findings if item.pristine_sha256]  # the others this release never had
        drifted = any(item.status in (FileStatus.FOREIGN, FileStatus.MISSING) for item in shipped)
        return (InstallationStatus.DRIFTED if drifted else InstallationStatus.CLEAN), findings
    if kinds == {FileStatus.PATCHED}:
        current = not digest or digest == state.patchset.digest
        return (InstallationStatus.APPLIED if current else InstallationStatus.OUTDATED), findings
    if kinds <= {FileStatus.WIPED, FileStatus.PATCHED} and _originals(state, findings) == {FileStatus.WIPED}:
        return InstallationStatus.WIPED, findings
    return InstallationStatus.DRIFTED, findings


def foreign_files(installation: Installation, ours: Container[str] = ()) -> dict[str, str]:
    """Every file of the package that is not what RECORD says, by path, with its digest ("": it is gone)."""
    record = installation.record
    found: dict[str, str] = {}
    for path, row in record.rows.items() if record else ():
        if row.sha256 and path not in ours and path.startswith(f"{installation.package}/"):
            try:
                with open(f"{installation.folder}/{path}", "rb") as file:
                    digest = sha256(file.read())
            except OSError:
                digest = ""
            if digest != row.sha256:
                found[path] = digest
    return found


def _originals(state: State, findings: Iterable[Finding]) -> set[FileStatus]:
    """The statuses of the files that SGLang itself has: a reinstallation restores those, not the ones we added."""
    added = {entry.path for entry in state.files if entry.added}
    return {item.status for item in findings if item.path not in added}


_CAUSES = {
    FileStatus.FOREIGN: "somebody else edited this file",
    FileStatus.UNKNOWN_BASE: "RECORD has no digest of this file, so nothing proves that it is pristine",
    FileStatus.MISSING: "this file was deleted",
    FileStatus.WIPED: "the patch is gone from this file",
}
_REMEDIES = {
    FileStatus.FOREIGN: "Reinstall SGLang (pip install --force-reinstall --no-deps).",
    FileStatus.UNKNOWN_BASE: "Reinstall SGLang from its wheel, or pass --allow-drift to build on it as it is.",
    FileStatus.MISSING: "Reinstall SGLang (pip install --force-reinstall --no-deps).",
    FileStatus.WIPED: "Run `ddtree-patch apply`.",
}
_AS_IT_IS = "To build on it as it is: --allow-drift."


def explain(finding: Finding, remedy: str, *, patched: bool) -> Diagnostic:
    """A finding as a diagnostic, with the remedy for its cause. ``patched``: it belongs to an applied patchset."""
    cause = _CAUSES[finding.status]
    if patched and finding.status is FileStatus.FOREIGN:
        cause = "somebody edited this file after it was patched"
    elif finding.status is FileStatus.WIPED and not finding.current_sha256:
        cause = "this file of the patch was deleted"
    detail = _AS_IT_IS if not patched and finding.status is FileStatus.FOREIGN else ""
    return Diagnostic(
        finding.status.value,
        Severity.ERROR,
        f"{finding.path}: {cause}",
        detail,
        remedy or _REMEDIES[finding.status],
        path=finding.path,
    )
