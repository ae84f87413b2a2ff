"""Runs a probe program on an SGLang tree, in the interpreter that SGLang would run in.

    python -B bootstrap.py --folder FOLDER [--stand-ins DIR] PROGRAM [ARGS ...]

FOLDER holds ``sglang/`` and comes first on the path. PROGRAM is a Python file with ``checks()``, which yields pairs of
a name and a callable; a callable returns a line of detail, or raises where the check fails. A callable that takes long
or measures something is a generator function: text that it yields says what it is doing, a dictionary is one row of a
table. PROGRAM imports the modules beside it as ``from . import name``; its folder is not on the path.

The last line of standard output is one JSON object, ``{"stand_ins": [...], "checks": [{"id", "outcome", "detail",
"seconds", "rows"}]}``, and nothing else is written there: whatever libraries print goes to standard error. Each line in
the pipe that an environment variable may name says what is going on now.

GPU-only modules that cannot be imported here are served by our stand-ins, one by one and on this process's path alone;
every check that ran then names them. A check that needs a third-party package that is not installed is ``not_run``; a
missing module or name of SGLang's is a failure. Standard library only, Python 3.10 and later.

No bytecode is written beside any source. What has none there is compiled once for each folder that an environment
variable may name, however many processes import it: found again by the digest of its source, never by its path.
"""

from __future__ import annotations

import _imp
import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import json
import marshal
import math
import os
import platform
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

GPU_ONLY_MODULES = ("sgl_kernel", "torchvision")
FOLDER_VARIABLE = "DDTREE_PATCH_PROBE_FOLDER"  # where a program reads which tree it is to prove
STAND_INS_VARIABLE = "DDTREE_PATCH_PROBE_STAND_INS"  # their folder and names, for a fresh process of the program's
PROGRAM_VARIABLE = "DDTREE_PATCH_PROBE_PROGRAM"  # the program's own file, for the same
PROGRESS_VARIABLE = "DDTREE_PATCH_PROBE_PROGRESS"  # the number of a pipe; whoever started us may listen there
BYTECODE_VARIABLE = "DDTREE_PATCH_PROBE_BYTECODE"  # a folder that is trusted as the sources are: code lies in it
PACKAGE = "ddtree_patch_probe"  # what the program's folder is called in here

Row = dict[str, object]
Measuring = Generator[object, None, str]
Check = tuple[str, Callable[[], "str | Measuring"]]
Record = dict[str, object]


class StandIns:
    """A finder that serves the named modules from our folder, and no other module that happens to lie there."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self.folder = folder
        self.names = tuple(names)

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [self.folder]) if name in self.names else None

    def install(self) -> None:
        sys.meta_path.insert(0, self)  # before the path: a module can be installed and still fail to import
        os.environ[STAND_INS_VARIABLE] = json.dumps([self.folder, *self.names])


class Progress:
    """Tells whoever started this process what it is doing: how checks ended so far, which one runs, what that says."""

    def __init__(self) -> None:
        self.pipe = int(os.environ.pop(PROGRESS_VARIABLE, "-1"))
        self.ended: Counter[str] = Counter()
        self.check = ""
        if self.pipe >= 0:
            os.set_inheritable(self.pipe, False)

    def begin(self, check: str) -> None:
        self.check = check
        self.say("")

    def end(self, outcome: str) -> None:
        self.ended[outcome] += 1

    def say(self, text: str) -> None:
        ended = ", ".join(f"{count} {outcome}" for outcome, count in self.ended.items())
        line = (f"{ended}; now " if ended else "") + self.check + (f": {text}" if text else "")
        if self.pipe >= 0:
            with contextlib.suppress(OSError):  # nobody listens any more
                os.write(self.pipe, (" ".join(line.split()) + "\n").encode("utf-8", "replace"))


def main(argv: Sequence[str]) -> None:
    options = _parse(argv)
    owner, progress = os.getpid(), Progress()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        put_on_path(options.folder)
        keep_bytecode()
        _use_the_cpu_where_there_is_no_gpu()
        stand_ins = StandIns(options.stand_ins, [name for name in GPU_ONLY_MODULES if not _can_import(name)])
        stand_ins.install()
        checks = _checks_of(options.program, options.arguments)
        records = [_run(check, stand_ins.names, progress) for check in checks]
        _end_if_forked(owner)
        answer.write(json.dumps({"stand_ins": stand_ins.names, "checks": records}) + "\n")
    sys.stderr.flush()
    os._exit(0)  # the answer is out: no library's exit handler can delay it or change the status


def put_on_path(folder: str) -> None:
    """FOLDER first, in the place of this script's own folder, and no bytecode written into it."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ[FOLDER_VARIABLE] = sys.path[0] = os.path.realpath(folder)


def keep_bytecode() -> None:
    """From now on a source that has no valid bytecode beside it is compiled once, for all who keep theirs there too."""
    folder = os.environ.get(BYTECODE_VARIABLE, "")
    fix = getattr(_imp, "_fix_co_filename", None)  # what importlib gives code from another path its own path with
    if not folder or fix is None:
        return
    compiled = SourceFileLoader.source_to_code
    kind = f"{sys.implementation.cache_tag}-{sys.flags.optimize}"

    def source_to_code(self: SourceFileLoader, data: bytes, path: str, **more: int) -> CodeType:
        kept = Path(folder, f"{kind}-{hashlib.sha256(data).hexdigest()}")
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            code: CodeType = marshal.loads(kept.read_bytes())
            fix(code, path)
            return code
        code = compiled(self, data, path, **more)
        with contextlib.suppress(OSError, ValueError):  # a full disk: compiled again, as if nothing were kept
            part = kept.with_name(f"{kept.name}.{os.getpid()}")
            part.write_bytes(marshal.dumps(code))
            part.replace(kept)
        return code

    setattr(SourceFileLoader, "source_to_code", source_to_code)  # noqa: B010 - no type checker allows it otherwise


def missing_package(error: BaseException) -> str:
    """The third-party package whose absence this error is; empty for every other error."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    package = error.name.partition(".")[0]
    return "" if package == "sglang" else package


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bootstrap.py")
    parser.add_argument("--folder", required=True, help="the folder that holds sglang/")
    parser.add_argument("--stand-ins", default=str(Path(__file__).resolve().parent / "stand_ins"))
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def _use_the_cpu_where_there_is_no_gpu() -> None:
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # asks without starting CUDA, which survives no fork
    try:
        import torch
    except Exception:
        return  # each check that needs it says so
    if not torch.cuda.is_available():
        os.environ["SGLANG_USE_CPU_ENGINE"] = "1"


def _can_import(name: str) -> bool:
    """Tried in a child process, as a broken binary module may leave traces behind or end the process."""
    if importlib.util.find_spec(name) is None:
        return False
    if not hasattr(os, "fork"):
        return _imports(name)
    child = os.fork()
    if child == 0:
        os._exit(0 if _imports(name) else 1)
    return os.waitpid(child, 0)[1] == 0


def _imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    except BaseException:  # whatever it raises, it cannot be used
        return False
    return True


def _checks_of(program: str, arguments: Sequence[str]) -> Iterator[Check]:
    """The program's checks; where it fails to give them, that is a check of the program's own name."""
    sys.argv = [program, *arguments]
    try:
        yield from _load(program).checks()
    except (Exception, SystemExit) as error:
        yield Path(program).stem, partial(_raise, error)


def _load(program: str) -> ModuleType:
    """The program, as a module of a package that is its folder."""
    os.environ[PROGRAM_VARIABLE] = os.path.abspath(program)
    _make_package(program)
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{Path(program).stem}", program)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{program} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _make_package(program: str) -> None:
    """The package that is the program's folder. No ``__init__.py`` there is run."""
    package = ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(program))]
    sys.modules[PACKAGE] = package


def _settle_in_a_spawned_process() -> None:
    """What a process that a program spawned needs before it can find the program's function: its package, stand-ins.

    ``multiprocessing`` has given it our path, and runs this file again to have its main module.
    """
    folder, *names = json.loads(os.environ[STAND_INS_VARIABLE])
    keep_bytecode()
    StandIns(folder, names).install()
    _make_package(os.environ[PROGRAM_VARIABLE])


def _raise(error: BaseException) -> str:
    raise error


def _run(check: Check, stand_ins: Sequence[str], progress: Progress) -> Record:
    name, action = check
    rows: list[Row] = []
    _forget_half_an_import()
    progress.begin(name)
    owner, started = os.getpid(), time.monotonic()
    try:
        outcome, detail = "passed", _answer_of(action, rows, progress)
    except (Exception, SystemExit) as error:  # argparse ends a process where a library would raise
        outcome, detail = _verdict(error, stand_ins)
    _end_if_forked(owner)
    progress.end(outcome)
    if stand_ins and outcome != "not_run":
        detail = f"{detail} [stand-ins: {', '.join(stand_ins)}]"
    seconds = round(time.monotonic() - started, 3)
    return {"id": name, "outcome": outcome, "detail": detail, "seconds": seconds, "rows": rows}


def _answer_of(action: Callable[[], str | Measuring], rows: list[Row], progress: Progress) -> str:
    """What the check returns. What it yields on its way is said, or is a row: those are kept where it fails later."""
    answer = action()
    if not isinstance(answer, Generator):
        return answer
    with contextlib.closing(answer):
        while True:
            try:
                item = next(answer)
            except StopIteration as end:
                return end.value or ""
            if isinstance(item, dict):
                rows.append(_row(item))
            else:
                progress.say(str(item))


def _row(item: dict[object, object]) -> Row:
    """Flat, and fit for JSON, which knows no infinity: what is not a number is null."""
    row: Row = {}
    for name, value in item.items():
        if not isinstance(name, str) or not isinstance(value, (str, int, float, type(None))):
            raise TypeError(f"a row holds text, numbers and truth values, and {name!r} is {type(value).__name__}")
        row[name] = None if isinstance(value, float) and not math.isfinite(value) else value
    return row


def _end_if_forked(owner: int) -> None:
    """A fork of a check's own that comes back from it would run the other checks too, and answer in our place."""
    if os.getpid() != owner:
        sys.stderr.flush()
        os._exit(70)


def _forget_half_an_import() -> None:
    """Submodules without their package, which a failed import leaves behind, would fail the next one by a KeyError."""
    if "sglang" not in sys.modules:
        for name in [name for name in sys.modules if name.startswith("sglang.")]:
            del sys.modules[name]


def _verdict(error: BaseException, stand_ins: Sequence[str]) -> tuple[str, str]:
    package = missing_package(error)
    if package in stand_ins:
        return "not_run", f"the stand-in for {package} lacks what was asked for: {error}"
    if package:
        missing = {package} if importlib.util.find_spec("torch") else {package, "torch"}  # the one that says most
        names = " and ".join(sorted(missing)) + (" is" if len(missing) == 1 else " are")
        return "not_run", f"{names} not installed in Python {platform.python_version()} ({sys.executable})"
    traceback.print_exception(type(error), error, error.__traceback__)
    return "failed", f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(sys.argv[1:])
elif __name__ == "__mp_main__":
    _settle_in_a_spawned_process()
