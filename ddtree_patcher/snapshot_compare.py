"""What differs between a snapshot and what is there now, and which snapshot is nearest to it."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .digest import Read
from .errors import SourceError, UsageError
from .fingerprint import MODULE, Symbol, SymbolKind
from .model import Word
from .snapshot import Absent, FileFingerprint, Snapshot, fingerprint_file, version_order


class ChangeKind(Word):
    """What happened to a symbol, or to a file as a whole, from the snapshot to now."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"  # the same code under the same last name, in another file or scope
    REFORMATTED = "reformatted"  # formatting, comments or docstrings; the code means the same
    FILE_ADDED = "file_added"  # besides, each of its symbols is added or moved
    FILE_REMOVED = "file_removed"  # besides, each of its symbols is removed or moved


@dataclass(frozen=True, slots=True)
class SymbolChange:
    """One difference. For a move, ``path`` and ``qualname`` say where it was."""

    change: ChangeKind
    path: str
    qualname: str = ""  # empty for a file as a whole
    kind: SymbolKind = SymbolKind.MODULE
    before: str = ""  # signature in the snapshot; empty when added
    after: str = ""  # signature now; empty when removed
    new_path: str = ""  # where it is now; empty unless moved
    new_qualname: str = ""  # likewise
    line: int = 0  # 1-based, in the current file (for a move, in ``new_path``); 0 when removed or not known
    was: SymbolKind | None = None  # its kind in the snapshot; None unless it is changed and of another kind now


@dataclass(frozen=True, slots=True)
class Match:
    """The snapshot nearest to an installation, and how near it is."""

    snapshot: Snapshot
    agreement: float  # 0 to 1: share of the snapshot's symbols that the installation has with the same hash
    identical_files: int  # watched files that are byte for byte the same, or absent in both
    symbols: int = 0  # that the snapshot has
    shared: int = 0  # of these, how many the installation has with the same hash


# --- comparing ---------------------------------------------------------------------------------------------------


def compare(snapshot: Snapshot, current: Snapshot) -> tuple[SymbolChange, ...]:
    """Every difference, by path and qualname: nothing for files of equal digest, something for every other.

    Compared are the files that either of them watches; a file that one does not watch is absent there.
    """
    changes: list[SymbolChange] = []
    gone: list[_Place] = []
    new: list[_Place] = []
    for path in sorted({*snapshot.files, *current.files}):
        before = snapshot.files.get(path, Absent.ABSENT)
        after = current.files.get(path, Absent.ABSENT)
        if _digest(before) == _digest(after):
            continue
        if before is Absent.ABSENT:
            changes.append(SymbolChange(ChangeKind.FILE_ADDED, path))
        if after is Absent.ABSENT:
            changes.append(SymbolChange(ChangeKind.FILE_REMOVED, path))
        olds, news = _by_qualname(before), _by_qualname(after)
        left = [_Place(path, symbol) for name, symbol in olds.items() if name not in news]
        came = [_Place(path, symbol) for name, symbol in news.items() if name not in olds]
        altered = list(_altered(path, olds, news))
        if not (left or came or altered):  # blank lines, line endings, a byte order mark, another order
            altered = [SymbolChange(ChangeKind.REFORMATTED, path, MODULE, line=1)]
        gone += left
        new += came
        changes += altered
    changes += _moved_and_rest(gone, new)
    return tuple(sorted(changes, key=lambda change: (change.path, change.qualname, change.change.value)))


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    symbol: Symbol


def _digest(file: FileFingerprint | Absent) -> str:
    return file.sha256 if isinstance(file, FileFingerprint) else ""


def _by_qualname(file: FileFingerprint | Absent) -> dict[str, Symbol]:
    return {symbol.qualname: symbol for symbol in file.symbols} if isinstance(file, FileFingerprint) else {}


def _altered(path: str, olds: dict[str, Symbol], news: dict[str, Symbol]) -> Iterator[SymbolChange]:
    for qualname in olds.keys() & news.keys():
        old, new = olds[qualname], news[qualname]
        if (old.hash, old.kind) != (new.hash, new.kind):
            change = ChangeKind.CHANGED
        elif old.text != new.text:
            change = ChangeKind.REFORMATTED
        else:
            continue
        was = old.kind if old.kind is not new.kind else None
        yield SymbolChange(change, path, qualname, new.kind, old.signature, new.signature, line=new.line, was=was)


def _moved_and_rest(gone: Sequence[_Place], new: Sequence[_Place]) -> Iterator[SymbolChange]:
    """Pairs what is gone with what is new, within one file first, then in the order of paths and names."""
    pairs = _pairs(gone, new)
    arrived = set(pairs.values())
    for old in gone:
        symbol = old.symbol
        if old not in pairs:
            yield SymbolChange(ChangeKind.REMOVED, old.path, symbol.qualname, symbol.kind, before=symbol.signature)
            continue
        there = pairs[old]
        yield SymbolChange(
            ChangeKind.MOVED,
            old.path,
            symbol.qualname,
            symbol.kind,
            before=symbol.signature,
            after=there.symbol.signature,
            new_path=there.path,
            new_qualname=there.symbol.qualname,
            line=there.symbol.line,
        )
    for place in new:
        if place not in arrived:
            symbol = place.symbol
            yield SymbolChange(
                ChangeKind.ADDED, place.path, symbol.qualname, symbol.kind, after=symbol.signature, line=symbol.line
            )


def _pairs(gone: Sequence[_Place], new: Sequence[_Place]) -> dict[_Place, _Place]:
    waiting: defaultdict[tuple[SymbolKind, str, str], list[_Place]] = defaultdict(list)
    for place in new:
        waiting[_same_code(place.symbol)].append(place)
    pairs: dict[_Place, _Place] = {}
    for same_file in (True, False):
        for old in gone:
            if old in pairs or old.symbol.kind is SymbolKind.MODULE:
                continue
            candidates = waiting.get(_same_code(old.symbol), [])
            fitting = [place for place in candidates if place.path == old.path or not same_file]
            if fitting:
                pairs[old] = fitting[0]
                candidates.remove(fitting[0])
    return pairs


def _same_code(symbol: Symbol) -> tuple[SymbolKind, str, str]:
    return symbol.kind, symbol.name, symbol.hash


# --- the nearest -------------------------------------------------------------------------------------------------


def nearest(snapshots: Iterable[Snapshot], read: Read) -> Match:
    """The snapshot whose symbols the installation shares most; each watched file is read and fingerprinted once.

    A watched file that is absent counts as one symbol, shared when the installation has no such file either. Ties go
    to the snapshot with more identical files, then to the newest version. A file that is not Python shares nothing.
    Raises ``UsageError`` when there are no snapshots.
    """
    candidates = sorted(snapshots, key=version_order)
    if not candidates:
        raise UsageError(
            "there is no snapshot to compare with", remedy="capture one with `ddtree-patch snapshot capture`"
        )
    there = {path: _current(path, candidates, read) for path in {path for one in candidates for path in one.files}}
    matches = [_match(snapshot, there) for snapshot in candidates]
    return max(reversed(matches), key=lambda match: (match.agreement, match.identical_files))


def _current(path: str, snapshots: Sequence[Snapshot], read: Read) -> FileFingerprint | Absent:
    """What is at ``path`` now; a file that a snapshot knows by its digest is not parsed."""
    try:
        data = read(path)
    except FileNotFoundError:
        return Absent.ABSENT
    sha256 = hashlib.sha256(data).hexdigest()
    for snapshot in snapshots:
        known = snapshot.files.get(path)
        if isinstance(known, FileFingerprint) and known.sha256 == sha256:
            return known
    try:
        return fingerprint_file(data, path)
    except SourceError:
        return FileFingerprint(sha256, len(data), ())


def _match(snapshot: Snapshot, there: dict[str, FileFingerprint | Absent]) -> Match:
    shared = total = identical = 0
    for path, file in snapshot.files.items():
        wanted, present = _units(file), _units(there[path])
        total += len(wanted)
        shared += len(wanted & present)
        identical += _digest(file) == _digest(there[path])
    return Match(snapshot, shared / total if total else 0.0, identical, total, shared)


def _units(file: FileFingerprint | Absent) -> set[tuple[str, str]]:
    if isinstance(file, Absent):
        return {("", file.value)}
    return {(symbol.qualname, symbol.hash) for symbol in file.symbols}
