"""The one family of errors: each carries its data, its exit code and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .model import Diagnostic, ExitCode, Severity


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'plan'?``, to be put behind a sentence; empty where nothing that is known comes near."""
    from difflib import get_close_matches  # late: only mistakes need it

    near = " or ".join(map(repr, get_close_matches(word, list(known), n=2)))
    return f" Did you mean {near}?" if near else ""


class PatchError(Exception):
    """Something that ends a command, said so that a person can act on it."""

    exit_code: ExitCode = ExitCode.ERROR
    code: str = "error"

    def __init__(self, summary: str, *, remedy: str = "", detail: str = "", path: str = "", line: int = 0) -> None:
        super().__init__(summary)
        self.summary = summary
        self.remedy = remedy
        self.detail = detail
        self.path = path
        self.line = line

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (
            Diagnostic(
                code=self.code,
                severity=Severity.ERROR,
                summary=self.summary,
                detail=self.detail,
                remedy=self.remedy,
                path=self.path,
                line=self.line,
            ),
        )


class UsageError(PatchError):
    exit_code = ExitCode.USAGE
    code = "usage"


class PatchsetError(UsageError):
    """The patchset itself is wrong: a cycle, an unknown requirement, two owners of one span."""

    code = "patchset_invalid"


class EnvironmentRefused(PatchError):
    exit_code = ExitCode.ENVIRONMENT_REFUSED
    code = "environment_refused"


class Conflict(PatchError):
    """The code on disk is not what the steps expect; carries every diagnostic that says so."""

    exit_code = ExitCode.CONFLICT
    code = "conflict"

    def __init__(self, summary: str, *, found: Sequence[Diagnostic] = (), remedy: str = "", path: str = "") -> None:
        super().__init__(summary, remedy=remedy, path=path)
        self.found = tuple(found)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.found or PatchError.diagnostics(self)


class StalePlan(Conflict):
    code = "stale_plan"


class OtherPatchset(Conflict):
    code = "other_patchset"


class Locked(PatchError):
    exit_code = ExitCode.LOCKED
    code = "locked"


class Interrupted(PatchError):
    """A signal came; everything was put back before this was raised."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"


class SourceError(PatchError):
    """A file that cannot be edited safely: not UTF-8, not Python, or not reproduced by libcst."""

    exit_code = ExitCode.CONFLICT
    code = "not_roundtrippable"
