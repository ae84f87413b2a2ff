"""What a changed source means for its cached bytecode (PEP 3147, PEP 552).

A cache is trusted by the source's modification second and size, or not checked at all; after a same-size edit within a
second Python runs the old code (cpython #121376). So every cache of a changed source is set aside when it changes and
put back, with the source's old modification time, when the source is put back.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_SECOND = 1_000_000_000


def caches_of(folder: Path, path: str) -> tuple[str, ...]:
    """The cached bytecode of one source, for every interpreter and optimisation level, as paths like ``path``."""
    source = PurePosixPath(path)
    if source.suffix != ".py":
        return ()
    cache = folder / source.parent / "__pycache__"
    names = (item.name for item in cache.glob(f"{source.stem}.*.pyc"))
    return tuple((source.parent / "__pycache__" / name).as_posix() for name in sorted(names))


def source_of(cache: str) -> str:
    """The source that a cache was compiled from."""
    folder, _, name = cache.rpartition("/__pycache__/")
    return f"{folder}/{name.partition('.')[0]}.py"


def later_than(now_ns: int, before_ns: int) -> int:
    """A modification time for changed content: now, and never in the same second as before."""
    return now_ns if now_ns // _SECOND != before_ns // _SECOND else before_ns + _SECOND
