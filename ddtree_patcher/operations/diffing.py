"""``diff``: a snapshot against the installation, by symbol, and what each difference means for each step."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from ..model import Diagnostic, ExitCode, Report, Severity, StepOutcome, StepResult
from ..patchset import Patchset
from ..planner import draft
from ..pristine import Pristine
from ..snapshot import Snapshot, bundled, capture, load
from ..snapshot_compare import ChangeKind, SymbolChange, compare, nearest
from ..tree import Tree
from .session import Session

# Holds upstream source: out of reach of git and of what is packaged.
TEXTS = ".snapshots"


def diff(session: Session, wanted: str, *, text: bool, exit_code: bool) -> Report:
    """Compare with the snapshot of VERSION, of a PATH, or (``auto``) of this version, else the nearest by content."""
    installation = session.installation
    look = Pristine(installation, session.store, session.state(), allow_drift=True)
    snapshot, agreement, how = _choose(session, wanted, look)
    version = installation.version or "unknown"
    watched = session.loaded.patchset.watched()
    known = snapshot.only(watched)  # what other patchsets look at is none of this one's business
    current = capture(installation.distribution, version, known.files, look.read, known=known)
    changes = compare(known, current)
    made = draft(session.loaded.patchset, Tree(look.read))
    extra: dict[str, object] = {
        "snapshot": {"version": snapshot.version, "chosen": how, "agreement": round(agreement, 4)},
        "changes": [_row(item) for item in changes],
        "meaning": [_meaning(session.loaded.patchset, step, changes) for step in made.steps],
    }
    diagnostics = _unwatched(snapshot, watched)
    if text:
        extra["text"], notes = _text_diff(snapshot, look, wanted)
        diagnostics += notes
    code = ExitCode.CHANGES if exit_code and changes else ExitCode.OK
    return session.report("diff", code, steps=made.steps, diagnostics=tuple(diagnostics), extra=extra)


def _choose(session: Session, wanted: str, look: Pristine) -> tuple[Snapshot, float, str]:
    if wanted != "auto":
        snapshot = load(wanted)
        return snapshot, nearest((snapshot,), look.read).agreement, "named"
    known = [item for item in bundled() if item.distribution == session.installation.distribution]
    same = [item for item in known if item.version == session.installation.version]
    if same:
        return same[0], nearest(same, look.read).agreement, "version"
    match = nearest(known, look.read)
    return match.snapshot, match.agreement, "nearest"


def _unwatched(snapshot: Snapshot, watched: Sequence[str]) -> list[Diagnostic]:
    """A warning where the snapshot says nothing of files that the patchset looks at."""
    lacking = [path for path in watched if path not in snapshot.files]
    if not lacking:
        return []
    name = f"{snapshot.distribution} {snapshot.version}"
    summary = f"the snapshot of {name} says nothing of {len(lacking)} files that this patchset looks at"
    remedy = "Capture one that does, from the release's wheel: `ddtree-patch snapshot capture WHEEL --out FILE`."
    return [Diagnostic("unwatched", Severity.WARNING, summary, "\n".join(lacking), remedy, path=lacking[0])]


def _row(item: SymbolChange) -> dict[str, object]:
    return {
        "change": item.change.value,
        "path": item.path,
        "symbol": item.qualname,
        "before": item.before,
        "after": item.after,
        "moved_to": f"{item.new_path}:{item.new_qualname}" if item.change is ChangeKind.MOVED else "",
        "line": item.line,
    }


def _meaning(patchset: Patchset, step: StepResult, changes: Sequence[SymbolChange]) -> dict[str, object]:
    """A step's prospects: does it still fit, and which of the symbols that it looks at have changed?"""
    touched = _touched(patchset, step)
    changed = [f"{item.path}:{item.qualname}" for item in changes if (item.path, item.qualname) in touched]
    if step.outcome in (StepOutcome.PENDING, StepOutcome.ALREADY):
        verdict = f"fits, by the variant {step.variant}"
    elif step.outcome.is_conflict:
        verdict = f"needs work: {step.outcome}"
    else:
        verdict = str(step.outcome)
    return {"step": step.id, "verdict": verdict, "changed_symbols": sorted(changed)}


def _touched(patchset: Patchset, step: StepResult) -> set[tuple[str, str]]:
    declared = patchset.by_id[step.id]
    edits = [edit for variant in declared.variants for edit in variant.edits]
    contracts = [*declared.contract, *(item for variant in declared.variants for item in variant.contract)]
    return {(edit.path, name) for edit in edits for name in edit.symbols()} | {
        (item.path, item.name) for item in contracts
    }


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
