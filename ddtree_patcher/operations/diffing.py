"""``diff``: a snapshot against the installation, by symbol, and what each difference means for each step."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..fingerprint import MODULE, SymbolKind
from ..model import Diagnostic, ExitCode, Report, Severity
from ..planner import Draft, draft
from ..pristine import Pristine
from ..signatures import differences
from ..snapshot import Absent, FileFingerprint, Snapshot, bundled, capture, load, of_release
from ..snapshot_compare import ChangeKind, SymbolChange, compare, nearest
from ..survival import Survival
from ..survival import bundled as survival_of
from ..tree import Tree
from .known_variants import hold_back
from .prospects import Outlook, concerns, outlooks
from .session import Session
from .standing import Standing, build_of, judge_release

# Holds upstream source: out of reach of git and of what is packaged.
TEXTS = ".snapshots"


def diff(session: Session, wanted: str, *, text: bool, exit_code: bool) -> Report:
    """Compare with the snapshot of VERSION, of a PATH, or (``auto``) of this version, else the nearest by content."""
    installation = session.installation
    look = Pristine(installation, session.store, session.state(), allow_drift=True)
    snapshot, how = _choose(session, wanted, look)
    version, patchset = installation.version or "unknown", session.loaded.patchset
    watched = patchset.watched()
    ours = _is_ours(snapshot)
    known = snapshot.only(watched) if ours else snapshot  # what our other patchsets look at is not this one's business
    session.options.say(f"comparing {len(known.files)} files by symbol")
    current = capture(installation.distribution, version, known.files, look.read, known=known)
    changes = compare(known, current)
    session.options.say(f"planning {len(patchset.steps)} steps")
    made = _planned(session, look)
    steps = outlooks(patchset, made.steps, made.diagnostics, _variants_on(session, snapshot.version, ours=ours))
    extra: dict[str, object] = {
        "snapshot": {
            "version": snapshot.version,
            "chosen": how,
            "agreement": round(nearest((known,), look.read).agreement, 4),
            **_identical(known, current),
        },
        "changes": _rows(changes, steps),
        "meaning": [_meaning(step, changes) for step in steps],
    }
    diagnostics = _unwatched(snapshot, watched)
    if text:
        extra["text"], notes = _text_diff(snapshot, look, wanted)
        diagnostics += notes
    code = ExitCode.CHANGES if exit_code and changes else ExitCode.OK
    return session.report("diff", code, steps=made.steps, diagnostics=tuple(diagnostics), extra=extra)


def _choose(session: Session, wanted: str, look: Pristine) -> tuple[Snapshot, str]:
    if wanted != "auto":
        return load(wanted), "named"
    known = [item for item in bundled() if item.distribution == session.installation.distribution]
    same = [item for item in known if item.version == session.installation.version]
    if same:
        return same[0], "version"
    return nearest(known, look.read).snapshot, "nearest"


def _planned(session: Session, look: Pristine) -> Draft:
    """The steps as ``plan`` sees them: one that lost the shape of the nearest release is held back."""
    patchset, pristine = session.loaded.patchset, Tree(look.read)
    made = draft(patchset, pristine)
    release = judge_release(
        build_of(session.installation, look, patchset.supports, patchset.strongest), look.glance, allow_drift=True
    )
    if release.standing is Standing.MIXED:
        return made
    nearest = release.nearest or session.installation.version
    return hold_back(made, patchset, survival_of(session.loaded.folder), nearest, pristine)


def _identical(snapshot: Snapshot, current: Snapshot) -> dict[str, int]:
    """How many watched files are there, in either, and how many of them are the same byte for byte."""
    pairs = [(before, current.files[path]) for path, before in snapshot.files.items()]
    there = [pair for pair in pairs if pair != (Absent.ABSENT, Absent.ABSENT)]
    return {"files": len(there), "identical_files": sum(_sha256(before) == _sha256(now) for before, now in there)}


def _sha256(file: FileFingerprint | Absent) -> str:
    return file.sha256 if isinstance(file, FileFingerprint) else ""


def _is_ours(snapshot: Snapshot) -> bool:
    """Whether it is one that comes with the tool, and not that of a fork with the number of a release."""
    release = of_release(snapshot.distribution, snapshot.version)
    return release is not None and release.files == snapshot.files


def _variants_on(session: Session, version: str, *, ours: bool) -> Callable[[str], str | None]:
    """The variants on the snapshot's release; nothing is known of a snapshot that is not ours."""
    known = survival_of(session.loaded.folder) if ours else Survival()
    return lambda step: known.steps.get(step, {}).get(version)


def _unwatched(snapshot: Snapshot, watched: Sequence[str]) -> list[Diagnostic]:
    """A warning where the snapshot says nothing of files that the patchset looks at."""
    lacking = [path for path in watched if path not in snapshot.files]
    if not lacking:
        return []
    name = f"{snapshot.distribution} {snapshot.version}"
    summary = f"the snapshot of {name} says nothing of {len(lacking)} files that this patchset looks at"
    remedy = "Capture one that does, from the release's wheel: `ddtree-patch snapshot capture WHEEL --out FILE`."
    return [Diagnostic("unwatched", Severity.WARNING, summary, "\n".join(lacking), remedy, path=lacking[0])]


# --- symbols -----------------------------------------------------------------------------------------------------


def _rows(changes: Sequence[SymbolChange], steps: Sequence[Outlook]) -> list[dict[str, object]]:
    came: defaultdict[str, list[SymbolChange]] = defaultdict(list)
    for item in changes:
        if item.change is ChangeKind.ADDED:
            came[_last(item.qualname)].append(item)
    return [_row(item, steps, came) for item in changes]


def _row(item: SymbolChange, steps: Sequence[Outlook], came: Mapping[str, Sequence[SymbolChange]]) -> dict[str, object]:
    namesake = _namesake(item, came)
    return {
        "change": item.change.value,
        "path": item.path,
        "symbol": item.qualname,
        "before": item.before,
        "after": item.after,
        "moved_to": f"{item.new_path}:{item.new_qualname}" if item.change is ChangeKind.MOVED else "",
        "line": item.line,
        "details": list(_details(item)),
        "namesake": f"{namesake.path}:{namesake.qualname}" if namesake else "",
        "touched_by": [step.step for step in steps if concerns(item, step.touches)],
    }


def _details(item: SymbolChange) -> tuple[str, ...]:
    """What changed of a symbol, in words. Whether a body changed beside its signature, a snapshot does not tell."""
    if item.change is ChangeKind.REFORMATTED:
        return ("only formatting, comments or docstrings changed",)
    if item.change is not ChangeKind.CHANGED:
        return ()
    was = (f"was a {item.was}, is a {item.kind}",) if item.was else ()
    return was + differences(item.kind, item.before, item.after) or (_BODIES[item.kind],)


_BODIES = {
    SymbolKind.MODULE: "imports or module-level statements changed",
    SymbolKind.CLASS: "decorators or class-level statements changed",
    SymbolKind.FUNCTION: "body changed",
    SymbolKind.METHOD: "body changed",
    SymbolKind.CONSTANT: "value changed",
    SymbolKind.FIELD: "default or options changed",
    SymbolKind.MEMBER: "value changed",
}


def _namesake(item: SymbolChange, came: Mapping[str, Sequence[SymbolChange]]) -> SymbolChange | None:
    """Of a symbol that is gone: the one that is new under its last name. ``__init__`` and the like say nothing."""
    name = _last(item.qualname)
    if item.change is not ChangeKind.REMOVED or name == MODULE or name.startswith("__"):
        return None
    found = came.get(name, ())
    return found[0] if len(found) == 1 else None


def _last(qualname: str) -> str:
    return qualname.rpartition(".")[2].partition("#")[0]


# --- steps -------------------------------------------------------------------------------------------------------


def _meaning(outlook: Outlook, changes: Sequence[SymbolChange]) -> dict[str, object]:
    """A step's prospect: does it still fit, and which of the symbols that it touches have changed?"""
    changed = {f"{item.path}:{item.qualname}" for item in changes if item.qualname and concerns(item, outlook.touches)}
    why = outlook.reason
    return {
        "step": outlook.step,
        "prospect": outlook.prospect.value,
        "outcome": outlook.here.outcome.value,
        "variant": outlook.here.variant,
        "snapshot_variant": outlook.there,
        "path": why.path if why else "",
        "line": why.line if why else 0,
        "reason": why.summary if why else "",
        "changed_symbols": sorted(changed),
    }


# --- text --------------------------------------------------------------------------------------------------------


def _text_diff(snapshot: Snapshot, look: Pristine, wanted: str) -> tuple[str, list[Diagnostic]]:
    """A unified diff, where the full text of the snapshot was captured."""
    folder = text_folder(snapshot, wanted)
    if not folder.is_dir():
        note = Diagnostic(
            "no_text",
            Severity.WARNING,
            f"no full text of {snapshot.distribution} {snapshot.version} was captured in {folder}",
            remedy=f"Run `ddtree-patch snapshot capture --text WHEEL --out {folder}.json`.",
        )
        return "", [note]
    chunks: list[str] = []
    for path in sorted(snapshot.files):
        before, after = _lines(folder / path), _lines_of(look, path)
        chunks += difflib.unified_diff(before, after, f"{snapshot.version}/{path}", f"installed/{path}")
    return "".join(chunks), []


def text_folder(snapshot: Snapshot, wanted: str) -> Path:
    """Where a snapshot's full text lies: beside its file, or under ``.snapshots/`` of the current folder."""
    given = Path(wanted)
    if given.suffix == ".json":
        return given.with_suffix("")
    return Path(TEXTS) / f"{snapshot.distribution}-{snapshot.version}"


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []


def _lines_of(look: Pristine, path: str) -> list[str]:
    try:
        return look.read(path).decode("utf-8", "replace").splitlines(keepends=True)
    except FileNotFoundError:
        return []
