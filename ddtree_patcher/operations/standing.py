"""Is this a release that the snapshots know, a build that nobody has looked at, or a mixture of releases?

A version string proves nothing by itself: what counts is whether the watched files are those of the release. That is
known from digests alone where a snapshot has the version; elsewhere the code is compared by symbol with every snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..digest import Read
from ..installation import Installation
from ..model import CheckOutcome, CheckResult, Diagnostic, FileStatus, Severity, Tier, Word
from ..pristine import Pristine
from ..snapshot import Absent, FileFingerprint, Snapshot, bundled, of_release
from ..snapshot_compare import nearest


class Standing(Word):
    """What an installation is, beside the releases that the snapshots know."""

    KNOWN = "known"  # its watched files are those of the release that it says it is
    UNPROVED = "unproved"  # nobody has proved the patchset on it: the code alone decides
    MIXED = "mixed"  # a watched file is another release's


@dataclass(frozen=True, slots=True)
class Build:
    """What says which release this is."""

    distribution: str
    version: str
    supports: str  # PEP 440 specifier of the patchset
    recorded: Callable[[str], str]  # path -> digest by RECORD; empty for a file that it does not list
    edited: Mapping[str, str] = field(default_factory=dict)  # path -> digest of a file that is not what RECORD says
    strongest: Tier = Tier.E2E  # the furthest tier that has something of the patchset's to run

    def digest(self, path: str) -> str:
        """Of the file that counts; empty where nothing is known."""
        return self.edited.get(path) or self.recorded(path)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A standing, the nearest release where one was looked for, and what to tell."""

    standing: Standing
    nearest: str = ""  # version; empty for one that is known
    agreement: float = 1.0  # 0 to 1: share of its symbols that are the same here; of files, where it has that number
    mixed: frozenset[str] = frozenset()  # paths of files that are another release's
    diagnostics: tuple[Diagnostic, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {"standing": self.standing.value, "nearest": self.nearest, "agreement": round(self.agreement, 4)}


def build_of(installation: Installation, look: Pristine, supports: str, strongest: Tier) -> Build:
    """An installation as its RECORD describes it, and as what was looked at is on disk."""
    edited = {
        path: item.current_sha256
        for path, item in look.findings.items()
        if item.status is FileStatus.FOREIGN and not look.is_entry(path)
    }
    recorded = installation.recorded_sha256
    return Build(installation.distribution, installation.version, supports, recorded, edited, strongest)


def judge_release(build: Build, read: Read, *, allow_drift: bool = False) -> Judgement:
    """The standing of a build. ``read`` gives pristine bytes, and is used only where no snapshot has the version.

    A mixture is an error, or with ``allow_drift`` a warning; what is unproved is a warning.
    """
    own = of_release(build.distribution, build.version)
    strange = _strange(build, own)
    if (own is not None and not strange) or not build.version:
        return Judgement(Standing.KNOWN, diagnostics=_unsupported(build))
    known = [item for item in bundled() if item.distribution == build.distribution]
    if not known:
        return Judgement(Standing.KNOWN, diagnostics=_unsupported(build))
    origins = {path: found for path in strange if (found := _origins(build, path, known))}
    if origins:
        severity = Severity.WARNING if allow_drift else Severity.ERROR
        return Judgement(Standing.MIXED, mixed=frozenset(origins), diagnostics=_mixed(build, origins, severity))
    strange = [path for path in strange if path not in build.edited]  # of an edit more is said elsewhere
    if own is None:
        return _unproved(build, known, read)
    if strange:
        agreement = 1 - len(strange) / len(own.files)
        return Judgement(
            Standing.UNPROVED, own.version, agreement, diagnostics=(_rebuilt(build, strange, len(own.files)),)
        )
    return Judgement(Standing.KNOWN, diagnostics=_unsupported(build))


def proved_by(judgement: Judgement, checks: Sequence[CheckResult], strongest: Tier) -> tuple[Diagnostic, ...]:
    """What the checks that passed say about a build that nobody had proved before.

    ``strongest`` is the furthest tier that has something of the patchset's to run.
    """
    if judgement.standing is not Standing.UNPROVED:
        return ()
    tiers = [tier for tier in Tier if any(item.tier is tier for item in checks)]
    passed = [tier for tier in tiers if {item.outcome for item in checks if item.tier is tier} == {CheckOutcome.PASSED}]
    if strongest in passed:
        proved = "it works" if strongest is Tier.E2E else "it does what its own checks ask"
        summary = f"every tier passed here: on this machine it is proved that {proved}"
        return (Diagnostic(Standing.UNPROVED.value, Severity.NOTE, summary),)
    names = ", ".join(passed) or "none"
    shows = "it decodes right" if strongest is Tier.E2E else "it does its work"
    summary = (
        f"what is proved of it here: {names}; that {shows} is what {strongest} shows, and {strongest} did not pass here"
    )
    remedy = f"Run `ddtree-patch verify --tier {strongest}`."
    return (Diagnostic(Standing.UNPROVED.value, Severity.WARNING, summary, remedy=remedy),)


def _strange(build: Build, own: Snapshot | None) -> list[str]:
    """Watched files that are not those of the release; without a snapshot of it, those that RECORD denies."""
    if own is None:
        return sorted(build.edited)
    return [path for path, file in own.files.items() if build.digest(path) not in ("", _sha256(file))]


def _sha256(file: FileFingerprint | Absent | None) -> str:
    return file.sha256 if isinstance(file, FileFingerprint) else ""


def _origins(build: Build, path: str, known: list[Snapshot]) -> tuple[str, ...]:
    """The releases that have exactly this file."""
    return tuple(item.version for item in known if _sha256(item.files.get(path)) == build.digest(path))


def _mixed(build: Build, origins: Mapping[str, tuple[str, ...]], severity: Severity) -> tuple[Diagnostic, ...]:
    """As few diagnostics as there are releases that explain the files, the one that explains most of them first."""
    found, left = [], dict(origins)
    while left:
        counts = Counter(version for versions in left.values() for version in versions)
        most = max(counts, key=counts.__getitem__)
        paths = [path for path, versions in left.items() if most in versions]
        shared = [version for version in counts if all(version in left[path] for path in paths)]
        found.append(_mixture(build, shared, paths, severity))
        left = {path: versions for path, versions in left.items() if path not in paths}
    return tuple(found)


def _mixture(build: Build, versions: Sequence[str], paths: Sequence[str], severity: Severity) -> Diagnostic:
    first, others = paths[0], len(paths) - 1
    what = f"{first} is the file" if not others else f"{first} and {others} more are the files"
    summary = f"{what} of {build.distribution} {' or '.join(versions)}, and this is {build.version}"
    vouched = [path for path in paths if path not in build.edited]
    who = (
        "They came with the wheel, says RECORD: it was put together from several releases, or its version was changed."
    )
    if not vouched:
        who = "RECORD says otherwise: they were copied there after the installation."
    detail = "\n".join([who, *(paths if others else ())])
    remedy = (
        f"Reinstall one release whole: pip install --force-reinstall --no-deps {build.distribution}=={build.version}."
    )
    return Diagnostic(Standing.MIXED.value, severity, summary, detail, remedy, path=first)


_THE_CODE_DECIDES = (
    "Each step was decided by the code itself, and is planned only where its place is found exactly once."
)


def _unproved(build: Build, known: list[Snapshot], read: Read) -> Judgement:
    match = nearest(known, read)
    version, agreement = match.snapshot.version, match.agreement
    summary = (
        f"{build.distribution} {build.version} is none of the releases that this patchset was proved on; the nearest "
        f"is {version}: {match.shared} of its {match.symbols} watched symbols are the same here ({agreement:.1%})"
    )
    files = f"{match.identical_files} of {len(match.snapshot.files)} watched files are the same, byte for byte."
    remedy = _see_and_prove(build, version)
    what = Diagnostic(Standing.UNPROVED.value, Severity.WARNING, summary, f"{_THE_CODE_DECIDES}\n{files}", remedy)
    return Judgement(Standing.UNPROVED, version, agreement, diagnostics=(what, *_unsupported(build)))


def _rebuilt(build: Build, strange: list[str], watched: int) -> Diagnostic:
    """The number of a known release on code that no release has: a nightly build, a backport, a fork."""
    summary = (
        f"this build says that it is {build.distribution} {build.version}, and {len(strange)} of {watched} watched "
        "files are not those of that release"
    )
    remedy = _see_and_prove(build, build.version)
    detail = "\n".join([_THE_CODE_DECIDES, *strange])
    return Diagnostic(Standing.UNPROVED.value, Severity.WARNING, summary, detail, remedy, path=strange[0])


def _see_and_prove(build: Build, version: str) -> str:
    return (
        f"`ddtree-patch diff --snapshot {version}` lists what differs; after `apply`, "
        f"`ddtree-patch verify --tier {build.strongest}` proves on this machine that it works."
    )


def _unsupported(build: Build) -> tuple[Diagnostic, ...]:
    """A warning where the patchset does not name this version; none where either is no version or specifier."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # late: `status` does without
    from packaging.version import InvalidVersion

    try:
        named = not build.version or SpecifierSet(build.supports).contains(build.version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return ()
    if named:
        return ()
    summary = f"this patchset was made for {build.distribution} {build.supports}, and this is {build.version}"
    remedy = "`ddtree-patch plan` says, step by step, whether the code has a shape that it knows."
    return (Diagnostic(Standing.UNPROVED.value, Severity.WARNING, summary, remedy=remedy),)
