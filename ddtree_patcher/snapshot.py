"""Snapshots: the fingerprint of the watched files of one release, as a value and as committed JSON.

A snapshot holds digests, names and signatures, never source. Its bytes depend on nothing but the release: the same
wheel gives the same bytes on every machine. The format has one symbol a line, sorted, so that git shows what a release
changed. This module produces bytes; it never writes a file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from packaging.version import InvalidVersion, Version

from . import resources
from .digest import Read
from .errors import UsageError
from .fingerprint import Symbol, SymbolKind, fingerprint
from .model import Word

SCHEMA = "ddtree-patch.snapshot/1"

"""Gives the bytes of a file by its path relative to the folder that holds the package; else ``FileNotFoundError``."""


class Absent(Word):
    """Stands where a fingerprint would, for a watched file that the release does not have."""

    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class FileFingerprint:
    """One file: its exact bytes by digest, and what it defines."""

    sha256: str  # lower-case hex
    size: int  # bytes
    symbols: tuple[Symbol, ...]  # by qualname; lines are known after a capture and 0 after loading


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One release of one distribution, as far as it is watched."""

    distribution: str
    version: str
    files: Mapping[str, FileFingerprint | Absent]  # by path, as ``sglang/srt/server_args.py``

    def only(self, paths: Iterable[str]) -> Snapshot:
        """What it says of these files; nothing of those that it does not watch."""
        wanted = set(paths)
        return replace(self, files={path: item for path, item in self.files.items() if path in wanted})

    @property
    def file_name(self) -> str:
        return f"{self.distribution}-{self.version}.json"


# --- making one --------------------------------------------------------------------------------------------------


def capture(
    distribution: str, version: str, paths: Iterable[str], read: Read, *, known: Snapshot | None = None
) -> Snapshot:
    """Fingerprint every watched file; one that ``read`` does not find is recorded as absent.

    A file whose bytes are those of the same path in ``known`` costs one digest: its symbols are taken from there
    (without lines). Raises ``SourceError`` for a file that is not Python.
    """
    files: dict[str, FileFingerprint | Absent] = {}
    for path in sorted(set(paths)):
        try:
            data = read(path)
        except FileNotFoundError:
            files[path] = Absent.ABSENT
            continue
        sha256 = hashlib.sha256(data).hexdigest()
        before = known.files.get(path) if known else None
        if isinstance(before, FileFingerprint) and before.sha256 == sha256:
            files[path] = before
        else:
            files[path] = fingerprint_file(data, path)
    return Snapshot(distribution, version, files)


def fingerprint_file(data: bytes, path: str) -> FileFingerprint:
    symbols = sorted(fingerprint(data, path=path), key=lambda symbol: symbol.qualname)
    return FileFingerprint(hashlib.sha256(data).hexdigest(), len(data), tuple(symbols))


# --- as bytes ----------------------------------------------------------------------------------------------------


def to_bytes(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON: keys sorted, one symbol a line, LF, a newline at the end. Lines are not written."""
    files = [f"    {_json(path)}: {_file_json(file)}" for path, file in sorted(snapshot.files.items())]
    members = [
        f'  "distribution": {_json(snapshot.distribution)}',
        '  "files": {\n' + ",\n".join(files) + "\n  }" if files else '  "files": {}',
        f'  "schema": {_json(SCHEMA)}',
        f'  "version": {_json(snapshot.version)}',
    ]
    return ("{\n" + ",\n".join(members) + "\n}\n").encode()


def _file_json(file: FileFingerprint | Absent) -> str:
    if isinstance(file, Absent):
        return _json(file.value)
    ordered = sorted(file.symbols, key=lambda symbol: symbol.qualname)
    symbols = ",\n".join(f"        {_json(symbol.qualname)}: {_symbol_json(symbol)}" for symbol in ordered)
    return (
        f'{{\n      "sha256": {_json(file.sha256)},\n      "size": {file.size},\n'
        f'      "symbols": {{\n{symbols}\n      }}\n    }}'
    )


def _symbol_json(symbol: Symbol) -> str:
    row = {"hash": symbol.hash, "kind": symbol.kind.value, "signature": symbol.signature, "text": symbol.text}
    return _json({key: value for key, value in row.items() if value})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def from_bytes(data: bytes, *, path: str = "") -> Snapshot:
    """The snapshot that ``to_bytes`` wrote. Raises ``UsageError``, naming ``path``, for anything else."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, truncated, nested without end
        raise _unusable(path, f"it is not JSON: {error}") from error
    try:
        if document["schema"] != SCHEMA:
            raise _unusable(path, f"its schema is {document['schema']!r}, and this tool reads {SCHEMA!r}")
        return Snapshot(
            distribution=_checked(document["distribution"], _WORD),
            version=_checked(document["version"], _WORD),
            files={_checked_path(name): _file(row) for name, row in sorted(document["files"].items())},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _unusable(path, f"it is not laid out as {SCHEMA}: {type(error).__name__}: {error}") from error


_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHORT = re.compile(r"[0-9a-f]{16}")


def _file(row: object) -> FileFingerprint | Absent:
    if isinstance(row, str):
        return Absent(row)
    if not isinstance(row, dict):
        raise TypeError(f"a file must be an object or {Absent.ABSENT.value!r}, not {row!r}")
    symbols = tuple(_symbol(qualname, symbol) for qualname, symbol in sorted(row["symbols"].items()))
    size = row["size"]
    if not isinstance(size, int) or size < 0:
        raise TypeError(f"a size is {size!r}")
    return FileFingerprint(_checked(row["sha256"], _SHA256), size, symbols)


def _symbol(qualname: str, row: Mapping[str, str]) -> Symbol:
    signature = row.get("signature", "")
    if not isinstance(signature, str):
        raise TypeError(f"the signature of {qualname} is {signature!r}")
    return Symbol(
        qualname, SymbolKind(row["kind"]), signature, _checked(row["hash"], _SHORT), _checked(row["text"], _SHORT)
    )


def _checked(value: object, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} does not fit {pattern.pattern}")
    return value


def _checked_path(path: str) -> str:
    """A snapshot says what is read, so it must not lead out of the folder."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or ":" in path:
        raise ValueError(f"{path!r} is not a path inside the package")
    return path


def _unusable(path: str, reason: str) -> UsageError:
    return UsageError(
        f"{path or 'the snapshot'} is not a usable snapshot: {reason}",
        path=path,
        remedy="name a bundled version, or capture it again with `ddtree-patch snapshot capture`",
    )


# --- finding one -------------------------------------------------------------------------------------------------


@cache
def bundled() -> tuple[Snapshot, ...]:
    """Every snapshot that comes with the tool, oldest version first; read once, when first asked for."""
    found = (
        from_bytes(file.read_bytes(), path=str(file)) for file in sorted(resources.folder("snapshots").glob("*.json"))
    )
    return tuple(sorted(found, key=version_order))


@cache
def of_release(distribution: str, version: str) -> Snapshot | None:
    """The bundled snapshot of exactly this version; ``None`` where there is none. Reads that one alone."""
    file = resources.folder("snapshots") / f"{distribution}-{version}.json"
    if not _WORD.fullmatch(distribution) or not _WORD.fullmatch(version) or not file.is_file():
        return None
    return from_bytes(file.read_bytes(), path=str(file))


def version_order(snapshot: Snapshot) -> tuple[Version, str]:
    """Sorts snapshots by release; what is no version comes first."""
    try:
        return Version(snapshot.version), snapshot.version
    except InvalidVersion:
        return Version("0.dev0"), snapshot.version


def load(spec: str, *, distribution: str = "sglang") -> Snapshot:
    """The bundled snapshot of a version, else the snapshot in a file. Raises ``UsageError`` when it is neither."""
    folder = resources.folder("snapshots")
    file = folder / f"{distribution}-{spec}.json"
    if not _WORD.fullmatch(spec) or not file.is_file():
        file = Path(spec)
    try:
        return from_bytes(file.read_bytes(), path=str(file))
    except OSError as error:
        versions = sorted(name.stem.removeprefix(f"{distribution}-") for name in folder.glob(f"{distribution}-*.json"))
        raise UsageError(
            f"there is no snapshot {spec!r}: neither a bundled version nor a file that can be read",
            path=spec,
            detail=f"{file}: {error.strerror}",
            remedy=f"name a file, or one of {', '.join(versions) or 'no bundled versions'}",
        ) from error
