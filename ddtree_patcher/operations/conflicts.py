"""What a person needs to act on a conflict: where the place went, until when it was there, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ..codemods import Source, Target
from ..digest import Read
from ..errors import SourceError
from ..model import Diagnostic, History, StepOutcome
from ..places import place_in
from ..snapshot import FileFingerprint, Snapshot, bundled, of_release, version_order
from ..survival import Survival
from .moves import Move, find_move

_MOVABLE = {StepOutcome.ANCHOR_MISSING.value, StepOutcome.PRECONDITION_FAILED.value, StepOutcome.FILE_MISSING.value}
_PLACES = {*_MOVABLE, StepOutcome.ANCHOR_AMBIGUOUS.value}
_SHOWN = 5  # candidates


@dataclass(frozen=True)
class Here:
    """The code that the conflicts are in."""

    distribution: str
    version: str
    read: Read  # pristine bytes
    python: Callable[[], Iterable[str]]  # every Python file of the package
    survival: Survival
    published: bool = False  # the files are the release's own, as its wheel has them


def explained(made: Mapping[Diagnostic, Target], item: Diagnostic, here: Here) -> Diagnostic:
    """A conflict of a step with its history, the places in other files, and a remedy; anything else as it is."""
    if item.code not in _PLACES or not item.step:
        return item
    history = here.survival.history(item.step, here.version, published=here.published)
    target = made.get(item)
    if target is not None and target.scope and history.last_matched:
        item = _new_names_first(item, _known(here, item.path, history), here)
    move = None
    if item.code in _MOVABLE and target is not None and target.scope:
        move = find_move(
            item.path, target, here.read, here.python(), _known(here, item.path, history).get(target.scope, "")
        )
    if move is not None and not _was_there(here, move, history):
        item = _with_move(item, move)
        if move.certain:
            history = replace(history, moved_to=move.path, moved_since=_since(here, move, history))
    return replace(item, history=history, remedy=_remedy(item, history, here))


def _with_move(item: Diagnostic, move: Move) -> Diagnostic:
    """The place in the other file comes first where it is certain, else last."""
    place = place_in(move.source, move.line, move.score)
    known = item.candidates
    places = (place, *known) if move.certain or not known else (*known[: _SHOWN - 1], place)
    return replace(item, candidates=places[:_SHOWN], path=places[0].path, line=places[0].line)


def _was_there(here: Here, move: Move, history: History) -> bool:
    """Whether the other file had such a definition when the step still found its place in the first one."""
    return move.qualname in _known(here, move.path, history)


def _new_names_first(item: Diagnostic, known: Mapping[str, str], here: Here) -> Diagnostic:
    """Of the definitions that come near, those that the file did not have: what is gone may be one of them."""
    lines = _definitions(item.path, here)
    places = sorted(item.candidates, key=lambda place: lines.get(place.line, "") in {"", *known})
    return replace(item, candidates=tuple(places), line=places[0].line) if known and places else item


def _definitions(path: str, here: Here) -> dict[int, str]:
    """The dotted name of every class and function by its line."""
    try:
        source = Source.parse(here.read(path), path)
    except (FileNotFoundError, SourceError):
        return {}
    return {node.lineno: name for name, nodes in source.definitions.items() for node in nodes}


def _known(here: Here, path: str, history: History) -> dict[str, str]:
    """Symbol -> hash of a file in the last release in which the step found its place; empty where nothing is known."""
    found = of_release(here.distribution, history.last_matched)
    return _symbols(found, path) if found else {}


def _since(here: Here, move: Move, history: History) -> str:
    """The first release, of those up to this one, in which the symbol lives in the other file."""
    if not history.last_matched:
        return ""
    known = [item.version for item in _snapshots(here)]
    later = known[known.index(history.last_matched) + 1 :] if history.last_matched in known else []
    first = history.first_failed
    upto = later[: later.index(here.version) + 1] if here.version in later else later
    there = [item for item in _snapshots(here) if item.version in upto and move.qualname in _symbols(item, move.path)]
    return there[0].version if there else first


def _snapshots(here: Here) -> list[Snapshot]:
    return sorted((item for item in bundled() if item.distribution == here.distribution), key=version_order)


def _symbols(snapshot: Snapshot, path: str) -> dict[str, str]:
    file = snapshot.files.get(path)
    return {item.qualname: item.hash for item in file.symbols} if isinstance(file, FileFingerprint) else {}


def _remedy(item: Diagnostic, history: History, here: Here) -> str:
    """What to do about it, and what to do until then."""
    first = item.remedy
    if history.moved_to:
        first = f"`ddtree-patch diff` shows the rest; the step needs a variant for {history.moved_to}."
    if not history.last_matched:
        return first
    release = f"{here.distribution}=={history.last_matched}"
    if history.last_matched == here.version:
        return f"{first} Or put the published file back: pip install --force-reinstall --no-deps {release}."
    return f"{first} Until then stay on {release}, the last release in which it fits."
