"""What a changed source means for its cached bytecode (PEP 3147, PEP 552).

A cache is trusted by the source's modification second and size, or not checked at all; after a same-size edit within a
second Python runs the old code (cpython #121376). So every cache of a changed source is set aside when it changes and
put back, with the source's old modification time, when the source is put back.

Caches below ``sys.pycache_prefix`` lie outside the installation and are never written. Those that Python checks are
disbelieved there as well, by the source's new second or by its hash; :func:`unchecked_elsewhere` names the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

_SECOND = 1_000_000_000
_HEADER = struct.Struct("<4sI")  # magic, flags
_HASH_BASED, _CHECKED = 0b01, 0b10  # PEP 552


def caches_of(folder: Path, path: str) -> tuple[str, ...]:
    """The cached bytecode of one source, for every interpreter and optimisation level, as paths like ``path``."""
    source = PurePosixPath(path)
    if source.suffix != ".py":
        return ()
    inside = (source.parent / "__pycache__").as_posix()
    names = sorted(item.name for item in (folder / inside).glob("*.pyc"))
    return tuple(cache for name in names if source_of(cache := f"{inside}/{name}") == path)


def source_of(cache: str) -> str:
    """The source that a cache was compiled from: ``a/__pycache__/b.cpython-311.opt-1.pyc`` is of ``a/b.py``."""
    folder, _, name = cache.rpartition("/__pycache__/")
    return f"{folder}/{_module_of(name)}.py"


def is_cache(path: str) -> bool:
    """Whether a file is cached bytecode: derived from a source, and no work of anybody's."""
    return path.endswith(".pyc") and "/__pycache__/" in path


def unchecked_elsewhere(prefix: str, folder: Path, paths: Iterable[str]) -> list[Path]:
    """Caches of these sources below ``sys.pycache_prefix`` that Python believes without a look at the source."""
    if not prefix:
        return []
    found: list[Path] = []
    for source in [folder / path for path in paths if path.endswith(".py")]:
        beside = Path(prefix, *source.parent.parts[1:])
        found += [item for item in beside.glob("*.pyc") if _module_of(item.name) == source.stem and _unchecked(item)]
    return sorted(found)


def _module_of(name: str) -> str:
    """The module of a cache's name: without ``.pyc``, an optimisation level and the interpreter's tag."""
    stem, _, last = name.removesuffix(".pyc").rpartition(".")
    return stem.rpartition(".")[0] if last.startswith("opt-") and "." in stem else stem


def _unchecked(cache: Path) -> bool:
    try:
        with open(cache, "rb") as file:
            _, flags = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return False  # what cannot be read is not run either
    return bool(flags & _HASH_BASED) and not flags & _CHECKED


def later_than(now_ns: int, before_ns: int) -> int:
    """A modification time for changed content: now, and never in the same second as before."""
    return now_ns if now_ns // _SECOND != before_ns // _SECOND else before_ns + _SECOND
