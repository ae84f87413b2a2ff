"""What the design promises of the code itself: who may import whom, who may write, and what starts fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

import ddtree_patcher

PACKAGE = Path(ddtree_patcher.__file__).parent
PROGRAMS = "verification/probes/"  # run by the target's interpreter, never imported here
MODULES = {
    path.relative_to(PACKAGE).as_posix(): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.relative_to(PACKAGE).as_posix().startswith((PROGRAMS, "_patchsets/"))
}

# From the bottom up. A module imports from its own layer and from those below it, and from nothing above.
LAYERS = (
    ("model",),
    ("errors", "resources", "signals"),
    ("attributes", "digest", "disk", "links", "output"),
    ("graph", "canonical", "fingerprint", "codemods"),
    (
        "tree",
        "bytecode",
        "interpreter",
        "lock",
        "processes",
        "records",
        "signatures",
        "snapshot",
        "snapshot_sources",
        "snapshot_compare",
        "survival",
        "wheels",
    ),
    ("installation", "patchset", "places", "spans", "store"),
    ("attestation", "shape", "sentinels", "contract", "pristine", "variants", "planner"),
    ("transaction",),
    ("verification",),
    ("operations",),
    ("report",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PURE = {
    "model",
    "errors",
    "graph",
    "canonical",
    "fingerprint",
    "signatures",
    "codemods",
    "places",
    "spans",
    "contract",
    "shape",
    "sentinels",
    "variants",
    "planner",
}


def part(path: str) -> str:
    """The room that a module belongs to: its top-level name."""
    return path.partition("/")[0].removesuffix(".py")


def imports(path: Path, name: str) -> Iterator[tuple[str, bool]]:
    """What a module imports, as (room, for types alone)."""
    package = ["ddtree_patcher", *name.split("/")[:-1]]
    tree = ast.parse(path.read_bytes())
    typing = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "ddtree_patcher" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for item in names:
            yield item, node in typing


def rooms(path: Path, name: str) -> set[str]:
    """The rooms of this package that a module imports when it runs."""
    found = {
        item.split(".")[1] for item, typing in imports(path, name) if item.startswith("ddtree_patcher.") and not typing
    }
    return found - {"__version__"}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "__init__.py"])
def test_every_module_belongs_to_a_layer_and_imports_downwards(name: str) -> None:
    mine = RANK[part(name)]
    above = {room for room in rooms(MODULES[name], name) if RANK[room] > mine}
    assert not above, f"{name} imports {above}, which lies above it"


def test_no_two_rooms_import_each_other() -> None:
    edges = {(part(name), room) for name, path in MODULES.items() for room in rooms(path, name) if room != part(name)}
    assert not [edge for edge in edges if edge[::-1] in edges]


def test_the_renderers_know_the_model_alone() -> None:
    for name, path in MODULES.items():
        if part(name) == "report":
            assert rooms(path, name) <= {"model", "report"}, name


def test_the_engine_knows_nothing_of_its_patchsets() -> None:
    """No module names DDTREE's steps or imports a patchset; only defaults and texts may say the tool's own name."""
    for name, path in MODULES.items():
        modules = {item for item, _ in imports(path, name)}
        assert not {item for item in modules if item.partition(".")[0] in ("patchsets", "sglang", "torch")}, name


@pytest.mark.parametrize("name", [name for name in MODULES if part(name) in PURE])
def test_the_pure_rooms_touch_no_process_and_no_terminal(name: str) -> None:
    modules = {item.partition(".")[0] for item, _ in imports(MODULES[name], name)}
    assert modules.isdisjoint({"subprocess", "os", "shutil", "tempfile", "click", "rich", "socket", "urllib"})


# Calls that change a disk, by the attribute or name that is called.
_WRITES = {
    *(
        "write_text",
        "write_bytes",
        "unlink",
        "rmdir",
        "mkdir",
        "makedirs",
        "replace",
        "rename",
        "symlink_to",
        "hardlink_to",
    ),
    *("link", "symlink", "chmod", "fchmod", "chown", "fchown", "utime", "touch", "truncate", "remove", "removedirs"),
    *("setxattr", "removexattr"),
    *("rmtree", "copy", "copy2", "copyfile", "copytree", "move", "mkstemp", "mkdtemp", "TemporaryDirectory"),
    *("NamedTemporaryFile", "extractall"),
}
_HARMLESS = {
    "replace",
    "copy",
    "link",
    "remove",
    "move",
}  # methods of strings, lists, values: only os, shutil and paths count
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}
_OWNERS = {"os", "shutil", "tempfile", "Path", "pathlib"}
_WRITERS = {
    "disk.py": "the system calls of the transaction and the store",
    "transaction.py": "the only one that writes into an installation",
    "store.py": "its own folder",
    "output.py": "files that the user names",
    "wheels.py": "its cache of wheels",
    "verification/probes_runner.py": "an empty folder for the program that it runs",
    "interpreter.py": "an empty folder to ask an interpreter from",
}
_TEMPORARY = {"verification/probes_runner.py", "interpreter.py"}


def writes(path: Path) -> Iterator[str]:
    """The calls of a module that may change a disk."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Attribute) and node.attr in _FLAGS:
            yield f"open with flags for writing in line {node.lineno}"
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if (isinstance(called, ast.Name) and called.id == "open") or (
            isinstance(called, ast.Attribute) and called.attr == "open"
        ):
            yield from _opening(node)
        elif isinstance(called, ast.Attribute) and called.attr in _WRITES:
            owner = ast.unparse(called.value)
            if called.attr not in _HARMLESS or owner in _OWNERS:
                yield f"{owner}.{called.attr}"
        elif isinstance(called, ast.Name) and called.id in _WRITES - _HARMLESS:
            yield called.id
        for given in node.args:  # a function that somebody else calls
            if isinstance(given, ast.Attribute) and given.attr in _WRITES and ast.unparse(given.value) in _OWNERS:
                yield ast.unparse(given)


def _opening(node: ast.Call) -> Iterator[str]:
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    modes = [item.value for item in arguments if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if any(set(mode) & set("wax+") and set(mode) <= set("rwxabt+") for mode in modes):
        yield f"open for writing in line {node.lineno}"


@pytest.mark.parametrize("name", MODULES)
def test_only_the_transaction_and_the_store_write(name: str) -> None:
    """``click.File`` writes plans and JUnit files for the user; the programs in ``probes/`` run elsewhere."""
    found = set(writes(MODULES[name]))
    if name in _TEMPORARY:
        assert {item.rpartition(".")[2] for item in found} <= {"TemporaryDirectory"}
    elif name not in _WRITERS:
        assert not found


@pytest.mark.parametrize("name", ["transaction.py", "store.py"])
def test_the_transaction_and_the_store_reach_the_disk_through_one_module(name: str) -> None:
    """So that a test which stands before every call of ``disk._call`` stands before everything that they do to it."""
    found = set(writes(MODULES[name]))
    assert found and {item.rpartition(".")[0] for item in found} == {"disk"}


def test_only_they_use_that_module() -> None:
    users = {name for name, path in MODULES.items() if "disk" in rooms(path, name)}
    assert users == {"transaction.py", "store.py"}


# What reads the disk or closes a descriptor; ``_call`` makes all others.
_BARE = {"os.path.lexists", "os.close"}


def test_that_module_makes_every_call_in_one_place() -> None:
    tree = ast.parse(MODULES["disk.py"].read_bytes())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert {item for item in called if item.startswith(("os.", "Path.", "shutil."))} == _BARE
    passed = {ast.unparse(node.args[0]) for node in ast.walk(tree) if _is_seam(node)}
    assert {"os.replace", "os.unlink", "os.mkdir", "os.rmdir", "os.write", "os.fsync", "os.fchmod"} <= passed


def _is_seam(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "_call"


def test_the_writers_are_seen_to_write(tmp_path: Path) -> None:
    """The test above can fail: it sees every kind of write that the two writers make."""
    seen = {item.rpartition(".")[2].partition(" in line")[0] for name in _WRITERS for item in writes(MODULES[name])}
    assert {"unlink", "mkdir", "rmdir", "replace", "utime", "fchmod", "fchown", "write_bytes"} <= seen
    assert {"open with flags for writing", "TemporaryDirectory"} <= seen
    sample = tmp_path / "sample.py"
    sample.write_text("with open(name, 'w') as file, path.open('ab'):\n    Path(name).open()\n")
    assert list(writes(sample)) == ["open for writing in line 1"] * 2


HEAVY = ("libcst", "torch", "sglang", "hypothesis", "packaging.specifiers")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["status"], ["status", "--help"], ["doctor"], ["--format", "json", "status"]],
    ids=" ".join,
)
def test_what_starts_fast_imports_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('sglang was imported')\n")
    program = (
        "import sys\n"
        "from ddtree_patcher.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('MODULES', *sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program, "--root", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 6), done.stderr
    loaded = set(done.stderr.rpartition("MODULES ")[2].split())
    assert "ddtree_patcher.cli.app" in loaded
    needed = {"packaging.specifiers"} if arguments == ["doctor"] else set()  # it compares releases; status does not
    assert not [name for name in HEAVY if name in loaded - needed]
