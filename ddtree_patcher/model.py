"""Value types and closed vocabularies: what every other module speaks in.

Nothing here does I/O or parses code. Every enum's values are the strings that appear in JSON and the
headings of ``docs/statuses.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Word(str, Enum):
    """A closed vocabulary: members print as the word that users and JSON see."""

    def __str__(self) -> str:
        return str(self.value)


class StepOutcome(Word):
    """What became of one step of a patchset."""

    APPLIED = "applied"  # its bytes were written, read back and are the planned ones
    PENDING = "pending"  # planned, not on disk yet
    ALREADY = "already"  # this tool applied it earlier and it is still there
    UPSTREAMED = "upstreamed"  # pristine SGLang has it: nothing to do
    NOT_NEEDED = "not_needed"  # this shape of the code does not need it
    ANCHOR_MISSING = "anchor_missing"
    ANCHOR_AMBIGUOUS = "anchor_ambiguous"
    HALF_UPSTREAMED = "half_upstreamed"  # pristine SGLang has a part of it
    PRECONDITION_FAILED = "precondition_failed"  # a contract does not hold
    BLOCKED_BY = "blocked_by"  # a step it requires cannot be applied
    FILE_MISSING = "file_missing"
    NOT_ROUNDTRIPPABLE = "not_roundtrippable"

    @property
    def is_conflict(self) -> bool:
        return self in _CONFLICTS


_CONFLICTS = frozenset(
    {
        StepOutcome.ANCHOR_MISSING,
        StepOutcome.ANCHOR_AMBIGUOUS,
        StepOutcome.HALF_UPSTREAMED,
        StepOutcome.PRECONDITION_FAILED,
        StepOutcome.BLOCKED_BY,
        StepOutcome.FILE_MISSING,
        StepOutcome.NOT_ROUNDTRIPPABLE,
    }
)


class StepProspect(Word):
    """What an upgrade means for one step: how it fared on the release of a snapshot, beside how it fares here."""

    STILL_FITS = "still_fits"  # by the variant that it took there
    FITS_BY_ANOTHER_VARIANT = "fits_by_another_variant"  # than there
    FITS = "fits"  # here; there it did not, or how it was done there is not known
    NEEDS_WORK = "needs_work"  # here it has no place
    NEEDED_SINCE = "needed_since"  # it has something to do here, and had nothing there
    NO_LONGER_NEEDED = "no_longer_needed"  # the other way round
    UPSTREAMED = "upstreamed"  # pristine code has it here
    NOT_NEEDED = "not_needed"  # here, nor there, as far as that is known


class FileStatus(Word):
    """What the bytes of one file on disk are."""

    PRISTINE = "pristine"  # as SGLang's own RECORD says
    PATCHED = "patched"  # as the applied patchset wrote them
    WIPED = "wiped"  # was patched, is pristine again: a reinstallation
    FOREIGN = "foreign"  # neither: somebody else wrote them
    UNKNOWN_BASE = "unknown_base"  # RECORD has no digest to prove them by
    MISSING = "missing"


class InstallationStatus(Word):
    """What an installation is, as a whole."""

    CLEAN = "clean"
    APPLIED = "applied"
    OUTDATED = "outdated"  # applied, by another version of the patchset
    WIPED = "wiped"
    DRIFTED = "drifted"
    INTERRUPTED = "interrupted"  # a journal was left: the next writing command recovers
    BUSY = "busy"  # another process is in the middle of changing it


class DriftCause(Word):
    """Why an installation is no longer as it was applied, or as it was installed."""

    REINSTALLED = "reinstalled"  # the same release was put over the patch
    UPGRADED = "upgraded"  # a later release was
    DOWNGRADED = "downgraded"  # an earlier release was
    EDITED = "edited"  # a file was changed, and nothing says by what
    EDITED_BY_TOOL = "edited_by_tool"  # a file was changed, and another patcher left its traces
    DELETED = "deleted"  # a file is gone
    HALF_RESTORED = "half_restored"  # some files are pristine again, others are patched
    STATE_LOST = "state_lost"  # it is patched, and the state folder is gone
    OTHER_ENVIRONMENT = "other_environment"  # the state folder is that of another environment
    RECORD_REWRITTEN = "record_rewritten"  # RECORD no longer says what pristine is, the files are as applied


class CheckOutcome(Word):
    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"  # always with its reason


class Tier(Word):
    """How far verification goes; each tier includes those before it."""

    STATIC = "static"
    IMPORT = "import"
    SMOKE = "smoke"
    E2E = "e2e"  # runs for minutes: only where it is asked for

    @property
    def rank(self) -> int:
        return list(Tier).index(self)


class Severity(Word):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class ExitCode(IntEnum):
    """Exit codes, the same for every command; ``symbol`` is the name in JSON."""

    OK = 0
    ERROR = 1
    USAGE = 2
    CHANGES = 3
    CONFLICT = 4
    VERIFICATION_FAILED = 5
    ENVIRONMENT_REFUSED = 6
    LOCKED = 7
    INTERRUPTED = 8

    @property
    def symbol(self) -> str:
        return self.name.lower()


class ReleaseVerdict(Word):
    """What a patchset would do to one release."""

    APPLIES = "applies"  # every step has its place, and the static checks pass on what it would write
    NOTHING_TO_DO = "nothing_to_do"  # every step is upstream already, or not needed
    CONFLICT = "conflict"  # a step has no place or several, or a watched name is used where nobody has looked
    VERIFICATION_FAILED = "verification_failed"  # a static check fails on what it would write
    REFUSED = "refused"  # the release lacks what the patchset builds on, or its wheel cannot be had or read

    @property
    def exit_code(self) -> ExitCode:
        return _CODES[self]


_CODES = {
    ReleaseVerdict.APPLIES: ExitCode.OK,
    ReleaseVerdict.NOTHING_TO_DO: ExitCode.OK,
    ReleaseVerdict.CONFLICT: ExitCode.CONFLICT,
    ReleaseVerdict.VERIFICATION_FAILED: ExitCode.VERIFICATION_FAILED,
    ReleaseVerdict.REFUSED: ExitCode.ENVIRONMENT_REFUSED,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file that came near to one that was wanted, with the code around it."""

    path: str  # relative to the folder that holds the package
    line: int  # 1-based
    score: float = 1.0  # 0..1, 1 for places that match in full; 0: where it was looked for, and nothing comes near
    context: tuple[tuple[int, str], ...] = ()  # line numbers and their text, in order; ``line`` is among them


@dataclass(frozen=True, slots=True)
class History:
    """What the snapshots say of a place that is wanted, by release; empty where they say nothing."""

    last_matched: str = ""  # the last known release in which the step found its place
    first_failed: str = ""  # the first after it in which it does not: a known one, or the installed version
    moved_to: str = ""  # the file in which the symbol lives now
    moved_since: str = ""  # the first known release in which it lives there


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that a person should know, and what to do about it."""

    code: str  # a word of docs/statuses.md
    severity: Severity
    summary: str  # one line
    detail: str = ""  # a paragraph; empty when the summary says all
    remedy: str = ""  # what to do; empty for notes
    step: str = ""  # empty when it is not about one step
    path: str = ""  # relative to the folder that holds the package; empty when not about one file
    line: int = 0  # 1-based; 0 when not about one line
    expected: str = ""  # the shape of code that was looked for; empty when it is not about a place in the code
    candidates: tuple[Place, ...] = ()  # the places that came near, best first
    history: History = History()


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of one step, by which variant, in which files."""

    id: str
    outcome: StepOutcome
    variant: str = ""  # empty when no variant fits
    files: tuple[str, ...] = ()
    summary: str = ""  # the step's own one-line intent


@dataclass(frozen=True, slots=True)
class FileState:
    """One file that the patchset changes or adds, in digests (SHA-256, lower-case hex; empty: no such file)."""

    path: str
    status: FileStatus
    added: bool  # true when pristine SGLang has no such file
    pristine_sha256: str = ""
    desired_sha256: str = ""
    current_sha256: str = ""


Cell = str | int | float | bool | None
Row = Mapping[str, Cell]  # column -> what was measured, in the order of the columns


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One verification: its tier, its name, how it ended and why."""

    tier: Tier
    id: str
    outcome: CheckOutcome
    detail: str = ""  # the reason whenever the outcome is not ``passed``
    seconds: float = 0.0
    rows: tuple[Row, ...] = ()  # what it measured; empty for most checks


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """What a patchset would do to one release, from its wheel alone."""

    version: str
    verdict: ReleaseVerdict
    wheel: str = ""  # the file's name; empty where there is none
    wheel_sha256: str = ""  # likewise
    standing: Mapping[str, object] = field(default_factory=dict)  # beside the snapshots, as ``plan`` says it
    steps: tuple[StepResult, ...] = ()  # empty for a release that is refused
    checks: tuple[CheckResult, ...] = ()  # the static ones; empty unless every step has its place
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that users ask for, and the tests that show on which releases it works, or is refused by name."""

    id: str
    title: str  # the heading of its column
    shown: Mapping[str, tuple[str, ...]]  # version -> tests that passed there, as "path::name"
    refused: Mapping[str, tuple[str, ...]]  # likewise: tests of its refusal


@dataclass(frozen=True, slots=True)
class PatchsetIdentity:
    """Which patchset, exactly: ``digest`` is over every file of its folder."""

    id: str = ""
    version: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What one command found or did: the single model that every renderer draws."""

    command: str
    exit_code: ExitCode
    outcome: str  # one word: an InstallationStatus, or the exit code's symbol
    installation: Mapping[str, object] = field(default_factory=dict)  # empty when none was found
    patchset: PatchsetIdentity = PatchsetIdentity()
    steps: tuple[StepResult, ...] = ()
    files: tuple[FileState, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    releases: tuple[ReleaseResult, ...] = ()  # of ``matrix`` alone
    capabilities: tuple[Capability, ...] = ()  # likewise, where they were asked for
    extra: Mapping[str, object] = field(default_factory=dict)  # what only this command has to say
