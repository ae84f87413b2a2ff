"""RECORD: what an installed distribution says its files are (packaging.python.org, "Recording installed projects")."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import EnvironmentRefused


@dataclass(frozen=True, slots=True)
class Row:
    """One row, as it is written: ``hash`` is ``algorithm=value`` in URL-safe base64, or empty."""

    path: str
    hash: str
    size: int = -1  # -1 where the row has none

    @property
    def sha256(self) -> str:
        """Lower-case hex; empty where the row has no (or another kind of) hash."""
        return _hex(self.hash)


@dataclass(frozen=True)
class Record:
    """A RECORD file, parsed; ``data`` is the file itself."""

    data: bytes = field(repr=False)
    rows: Mapping[str, Row] = field(repr=False)

    def with_rows(self, added: Mapping[str, bytes], base: bytes | None = None) -> bytes:
        """The file (or another state of it) with rows for added files appended; other rows stay byte for byte."""
        base = self.data if base is None else base
        newline = b"\r\n" if b"\r\n" in base else b"\n"
        gap = b"" if not base or base.endswith(b"\n") else newline
        lines = [row_for(path, content).encode() + newline for path, content in sorted(added.items())]
        return base + gap + b"".join(lines)

    def without_rows(self, paths: Sequence[str]) -> bytes:
        """The file without the rows of these paths; all others stay byte for byte."""
        unwanted = set(paths)
        kept = [line for line in self.data.splitlines(keepends=True) if _path_of(line) not in unwanted]
        return b"".join(kept)

    def with_digests_of(self, contents: Mapping[str, bytes], base: bytes) -> bytes:
        """Another state of the file, with these files' rows as they were installed: mended in place, else appended."""
        newline = "\r\n" if b"\r\n" in base else "\n"
        lines, there = [], set()
        for line in base.splitlines(keepends=True):
            path = _path_of(line)
            there.add(path)
            mended = row_for(path, contents[path]) + newline if path in contents else ""
            lines.append(mended.encode() or line)
        lost = {path: content for path, content in contents.items() if path not in there}
        return self.with_rows(lost, b"".join(lines)) if lost else b"".join(lines)


def parse(data: bytes, where: str) -> Record:
    """Read a RECORD; refuses rows that are not ``path,hash,size`` with all that is wrong."""
    rows: dict[str, Row] = {}
    problems: list[str] = []
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise EnvironmentRefused(f"{where} is not a RECORD file: {error}", remedy=_REMEDY) from error
    for number, fields in enumerate(lines, 1):
        if not fields:
            continue
        if len(fields) != 3 or not fields[0] or not (fields[2].isdigit() or not fields[2]):
            problems.append(f"line {number}: {','.join(fields)[:80]}")
            continue
        path, digest, size = fields
        rows[path] = Row(path, digest, int(size) if size else -1)
    if problems or not rows:
        detail = "; ".join(problems[:5]) or "it has no rows"
        raise EnvironmentRefused(f"{where} is damaged: {detail}", remedy=_REMEDY)
    return Record(data, rows)


def row_for(path: str, content: bytes) -> str:
    """The row of a file, as pip writes it, without a newline."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([path, f"sha256={digest}", len(content)])
    return out.getvalue()


def _hex(field_: str) -> str:
    kind, _, value = field_.partition("=")
    if kind != "sha256" or not value:
        return ""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except ValueError:
        return ""


def _path_of(line: bytes) -> str:
    fields = next(csv.reader([line.decode("utf-8", "replace").rstrip("\r\n")]), [""])
    return fields[0] if fields else ""


_REMEDY = "Reinstall the package: RECORD is what proves that its files are pristine."
