"""Every way in which an installation comes to differ from what was applied has a name, and one remedy that works.

Each drift is made for real (by pip where pip makes it), every command names the same cause and the same remedy, and the
remedy is then carried out as it reads. Each row is a public complaint, by its number in our list of them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ddtree_patcher.digest import sha256
from ddtree_patcher.model import DriftCause
from ddtree_patcher.records import parse, row_for
from transaction.world import ADDED, CHANGED, MODULES

from .environment import COMMANDS, STATE, Environment

ALPHA, BETA = CHANGED
CAUSES = {cause.value for cause in DriftCause}


@dataclass(frozen=True)
class Drift:
    """How it comes about after an application, what it is called, what its remedy holds, and what that leads to."""

    happens: Callable[[Environment], None]
    cause: DriftCause
    remedy: str
    end: str  # the status after the remedy
    before: str = "1.0"  # the release that was patched; empty: none was
    says: str = ""  # a part of the summary or of the detail


def reinstall(here: Environment) -> None:
    here.pip("install", "--force-reinstall", "--no-deps", "tiny==1.0")


def install(version: str) -> Callable[[Environment], None]:
    return lambda here: here.pip("install", "--no-deps", "--upgrade", f"tiny=={version}")


def edit(path: str, data: bytes = b"mine = 1\n") -> Callable[[Environment], None]:
    def change(here: Environment) -> None:
        with open(here.site / path, "ab") as file:
            file.write(data)

    return change


def sed(here: Environment) -> None:
    """``sed -i.bak``: the whole file again, in place of the old one, and a backup beside it."""
    target = here.site / ALPHA
    shutil.copy2(target, f"{target}.bak")
    target.write_bytes(target.read_bytes().replace(b"import os", b"import os, sys"))


def overlaid(here: Environment) -> None:
    """Another distribution brings the same file (row 15: whole-file copies)."""
    info = here.site / "overlay-3.dist-info"
    info.mkdir()
    edit(ALPHA, b"theirs = 1\n")(here)
    (info / "RECORD").write_text(row_for(ALPHA, here.read(ALPHA)) + "\noverlay-3.dist-info/RECORD,,\n")


def delete(path: str) -> Callable[[Environment], None]:
    return lambda here: (here.site / path).unlink()


def restore(here: Environment) -> None:
    (here.site / ALPHA).write_bytes(MODULES[ALPHA].encode())


def lose_state(here: Environment) -> None:
    shutil.rmtree(here.state)


def state_of_elsewhere(version: str, *, patched: bool) -> Callable[[Environment], None]:
    """The state folder of another environment is copied here, over one of this place's own."""

    def come(here: Environment) -> None:
        other = Environment(here.keep / "other", cli=here.cli, keep=here.keep)
        target = other.base / "venv/lib/python3/site-packages"
        shutil.copytree(here.base / f"installed-{version}", target)
        shutil.copytree(here.patchset, other.base / "patchset")
        assert other.run("apply").exit_code == 0
        shutil.rmtree(here.state)
        if not patched:
            here.put_back(here.base / "installed-1.0")
        shutil.copytree(other.state, here.state)

    return come


def record(change: Callable[[Environment, str, bytes], list[bytes]]) -> Callable[[Environment], None]:
    """Rewrite RECORD, row by row."""

    def rewrite(here: Environment) -> None:
        path = next(here.site.glob("tiny-*.dist-info/RECORD"))
        rows = [
            row for line in path.read_bytes().splitlines(keepends=True) for row in change(here, name_of(line), line)
        ]
        assert b"".join(rows) != path.read_bytes()
        path.write_bytes(b"".join(rows))

    return rewrite


def name_of(line: bytes) -> str:
    return line.decode().partition(",")[0]


def as_patched(here: Environment, path: str, line: bytes) -> list[bytes]:
    return [row_for(path, here.read(path)).encode() + b"\n"] if path in CHANGED else [line]


def without(*paths: str) -> Callable[[Environment, str, bytes], list[bytes]]:
    return lambda here, path, line: [] if path in paths else [line]


def unhashed(here: Environment, path: str, line: bytes) -> list[bytes]:
    return [f"{path},,\n".encode()] if path in CHANGED else [line]


_C = DriftCause
APPLY, REVERT, DISCARD = "`ddtree-patch apply`", "`ddtree-patch revert`", "`ddtree-patch revert --discard-edits`"
PIP, WHEEL = "(pip install --force-reinstall --no-deps tiny==", "`ddtree-patch revert --from-wheel FILE`"
DRIFTS = {
    "row 28: reinstalled": Drift(reinstall, _C.REINSTALLED, APPLY, "applied", says="tiny 1.0 was reinstalled"),
    "row 10: upgraded": Drift(install("2.0"), _C.UPGRADED, APPLY, "applied", says="from 1.0 to 2.0"),
    "row 10: downgraded": Drift(install("1.0"), _C.DOWNGRADED, APPLY, "applied", "2.0", "from 2.0 to 1.0"),
    "row 10: downgraded too far": Drift(install("0.9"), _C.DOWNGRADED, REVERT, "clean", says="is for >=1"),
    "edited": Drift(edit(ALPHA), _C.EDITED, DISCARD, "clean", says=ALPHA),
    "an added file edited": Drift(edit(ADDED), _C.EDITED, DISCARD, "clean", says=ADDED),
    "row 29: edited before": Drift(edit(ALPHA), _C.EDITED, PIP, "clean", ""),
    "row 35: sed and its backup": Drift(sed, _C.EDITED_BY_TOOL, DISCARD, "clean", says=f"{ALPHA}.bak lies beside it"),
    "row 15: a marker": Drift(
        edit(BETA, b"# patched by acme\r\n"), _C.EDITED_BY_TOOL, DISCARD, "clean", says=f"{BETA}:4: # patched by acme"
    ),
    "a half merged": Drift(edit(BETA, b"<<<<<<< ours\r\n"), _C.EDITED_BY_TOOL, DISCARD, "clean", says="<<<<<<< ours"),
    "row 15: overlaid": Drift(overlaid, _C.EDITED_BY_TOOL, DISCARD, "clean", says="overlay-3.dist-info lists"),
    "deleted": Drift(delete(ALPHA), _C.DELETED, REVERT, "clean", says=ALPHA),
    "an added file deleted": Drift(delete(ADDED), _C.DELETED, APPLY, "applied", says=ADDED),
    "deleted before": Drift(delete(ALPHA), _C.DELETED, PIP, "clean", "", says=ALPHA),
    "row 8: half restored": Drift(restore, _C.HALF_RESTORED, APPLY, "applied", says=ALPHA),
    "row 37: state lost": Drift(lose_state, _C.STATE_LOST, WHEEL, "clean", says=ADDED),
    "state of elsewhere": Drift(state_of_elsewhere("1.0", patched=False), _C.OTHER_ENVIRONMENT, APPLY, "applied"),
    "state of another release elsewhere": Drift(
        state_of_elsewhere("2.0", patched=False), _C.OTHER_ENVIRONMENT, APPLY, "applied"
    ),
    "row 29: RECORD blesses the patch": Drift(record(as_patched), _C.RECORD_REWRITTEN, APPLY, "applied", says=BETA),
    "row 29: RECORD without rows": Drift(record(without(*CHANGED, ADDED)), _C.RECORD_REWRITTEN, APPLY, "applied"),
    "row 29: RECORD without digests": Drift(record(unhashed), _C.RECORD_REWRITTEN, APPLY, "applied", says=ALPHA),
}


@pytest.fixture
def drifted(environment: Environment, request: pytest.FixtureRequest) -> tuple[Environment, Drift]:
    drift = DRIFTS[request.param]
    if drift.before:
        environment.have(drift.before)
        assert environment.run("apply").exit_code == 0
    drift.happens(environment)
    return environment, drift


@pytest.mark.parametrize("drifted", DRIFTS, indirect=True)
def test_named_by_every_command_and_mended_by_its_one_remedy(drifted: tuple[Environment, Drift]) -> None:
    here, drift = drifted
    edited = {path: here.read(path) for path in (*CHANGED, ADDED) if (here.site / path).exists()}
    remedies = set()
    for command in COMMANDS:
        with here.undone():
            result = here.run(command)
            named = [item for item in result.json["diagnostics"] if item["code"] in CAUSES]
            assert [item["code"] for item in named] == [drift.cause.value], (command, result.stdout)
            (cause,) = named
            assert drift.says in f"{cause['summary']}\n{cause['detail']}", command
            done = command in ("apply", "revert") and result.exit_code == 0
            if cause["remedy"] or not done:
                remedies.add(cause["remedy"])
            if command in ("status", "verify", "revert"):  # apply has what its steps say, too
                said = {item["remedy"] for item in result.json["diagnostics"] if item["severity"] == "error"}
                assert said <= {cause["remedy"]}, command
            if not done:
                assert {path: here.read(path) for path in edited} == edited, command
    (remedy,) = remedies
    assert drift.remedy in remedy
    here.carry_out(remedy)
    status = here.run("status")
    assert (status.json["outcome"], status.codes) == (drift.end, []), status.stdout
    if drift.end == "applied":
        assert here.run("verify").exit_code == 0
        assert here.run("revert").exit_code == 0
    assert_pristine(here)


def assert_pristine(here: Environment) -> None:
    """Every file is what RECORD says, RECORD is what pip wrote, and nothing of ours is left."""
    path = next(here.site.glob("tiny-*.dist-info/RECORD"))
    rows = {name: row.sha256 for name, row in parse(path.read_bytes(), str(path)).rows.items() if row.sha256}
    assert {name: sha256(here.read(name)) for name in rows} == rows
    assert set(MODULES) <= set(rows) and ADDED not in rows
    assert not (here.site / "tiny/made").exists() and not here.state.exists()
    version = re.sub(r"tiny-(.*)\.dist-info", r"\1", path.parent.name)
    if (here.base / f"installed-{version}").exists():
        original = here.base / f"installed-{version}" / path.parent.name / "RECORD"
        assert sorted(path.read_bytes().splitlines()) == sorted(original.read_bytes().splitlines())


def test_an_environment_that_was_moved_with_its_state_has_not_drifted(environment: Environment) -> None:
    """A virtual environment that is copied into an image takes the state with it."""
    assert environment.run("apply").exit_code == 0
    moved = Environment(environment.keep / "moved", cli=environment.cli, keep=environment.keep)
    target = moved.base / "venv/lib/python3/site-packages"
    target.mkdir(parents=True)
    for item in environment.own():
        (shutil.copytree if item.is_dir() else shutil.copy2)(item, target / item.name)
    shutil.copytree(environment.patchset, moved.base / "patchset")
    assert (moved.run("status").json["outcome"], moved.run("status").codes) == ("applied", [])
    assert moved.run("verify").exit_code == 0
    assert moved.run("revert").exit_code == 0
    assert_pristine(moved)


def test_another_environments_bytes_are_never_put_here(environment: Environment) -> None:
    """The state of a release elsewhere whose files are others; here is our patch, without a state of its own."""
    here = environment
    assert here.run("apply").exit_code == 0
    value = (here.state / "state.json").read_text()
    foreign = {path: f"# {path} of a release elsewhere\n".encode() for path in CHANGED}
    for path, data in foreign.items():
        value = value.replace(sha256(MODULES[path].encode()), sha256(data)).replace(
            sha256(here.read(path)), sha256(data + b"# patched\n")
        )
        (here.state / "objects" / sha256(data)).write_bytes(data)
    value = value.replace('"version": "1.0"', '"version": "1.5"').replace(str(here.site), "/srv/elsewhere")
    (here.state / "state.json").write_text(value)
    before = here.contents()
    for command in COMMANDS:
        for options in ((), ("--discard-edits",)) if command == "revert" else ((),):
            result = here.run(command, *options)
            (cause,) = [item for item in result.json["diagnostics"] if item["code"] in CAUSES]
            assert cause["code"] == "other_environment" and "/srv/elsewhere" in cause["summary"], command
            assert here.contents() == before
    here.carry_out(cause["remedy"])
    assert (here.run("status").json["outcome"], here.run("status").codes) == ("clean", [])
    assert_pristine(here)


@pytest.mark.parametrize("command", ["uninstall", "upgrade"])
def test_pip_takes_the_added_files_too(environment: Environment, command: str) -> None:
    """Rows 27 and 28: nothing that can be imported stays behind."""
    assert environment.run("apply").exit_code == 0
    if command == "uninstall":
        environment.pip("uninstall", "--yes", "tiny")
        assert not (environment.site / "tiny").exists()
    else:
        install("2.0")(environment)
        assert not (environment.site / ADDED).exists()
    left = [path.name for path in environment.own() if path.name not in ("tiny", "tiny-2.0.dist-info")]
    assert left == [STATE]


def test_an_image_in_which_the_patch_was_wiped_fails_its_last_step(environment: Environment) -> None:
    """Row 27: the patch before the last ``pip install``. ``status --check`` and ``verify`` both end the build."""
    assert environment.run("apply").exit_code == 0
    reinstall(environment)
    assert environment.run("status", "--check").exit_code == 3
    assert environment.run("verify").exit_code == 5
    assert environment.run("apply").exit_code == 0
    assert environment.run("status", "--check").exit_code == environment.run("verify").exit_code == 0


def test_no_backup_is_ever_written_into_the_package(environment: Environment) -> None:
    """Row 35: ``.orig`` files that became a part of the next patch."""
    before = {path.relative_to(environment.site) for path in Path(environment.site / "tiny").rglob("*")}
    assert environment.run("apply").exit_code == 0
    after = {path.relative_to(environment.site) for path in Path(environment.site / "tiny").rglob("*")}
    made = {Path(ADDED), *(parent for parent in Path(ADDED).parents if parent not in before and parent != Path("."))}
    assert {path for path in after - before if "__pycache__" not in path.parts} - {Path("tiny")} == made - {
        Path("tiny")
    }
