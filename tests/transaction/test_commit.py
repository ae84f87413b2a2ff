"""Apply and revert, undisturbed: what is written, what is kept, what comes back."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ddtree_patcher import transaction
from ddtree_patcher.digest import sha256
from ddtree_patcher.errors import Conflict, EnvironmentRefused
from ddtree_patcher.model import CheckOutcome, CheckResult, ExitCode, FileStatus, StepOutcome, Tier
from ddtree_patcher.operations import planning
from ddtree_patcher.operations.applying import Verification, apply
from ddtree_patcher.operations.verifying import verify
from ddtree_patcher.transaction import Change

from .world import ADDED, CHANGED, MODULES, RECORD, World

PASSED = CheckResult(Tier.STATIC, "fine", CheckOutcome.PASSED)


class TestApply:
    def test_writes_what_was_planned(self, world: World) -> None:
        report = world.apply(Tier.STATIC)
        assert report.exit_code is ExitCode.OK, report.diagnostics
        assert world.read("tiny/alpha.py") == b"import os\n\nvalue = 'new'\n"
        assert (
            world.read("tiny/sub/beta.py")
            == "class Args:\r\n    size: int = 1  # é\r\n    budget: int = 16\r\n".encode()
        )
        assert world.read(ADDED) == b"y = 2\n"
        assert [step.outcome for step in report.steps] == [StepOutcome.APPLIED] * 3
        assert {item.path: item.status for item in report.files} == dict.fromkeys([*CHANGED, ADDED], FileStatus.PATCHED)
        assert all(item.current_sha256 == item.desired_sha256 == sha256(world.read(item.path)) for item in report.files)
        assert world.status() == "applied"

    def test_touches_nothing_else(self, world: World) -> None:
        before = world.footprint()
        world.apply()
        after = world.footprint()
        same = {name for name in before if before[name] == after[name]}
        assert set(before) - same == {*CHANGED, RECORD}
        added = {name for name in set(after) - set(before) if not name.startswith(".ddtree-patch")}
        assert added == {ADDED, "tiny/made/", "tiny/made/deep/"}

    def test_keeps_modes_and_gives_files_a_new_time(self, world: World) -> None:
        before = world.footprint()
        world.apply()
        after = world.footprint()
        for path in (*CHANGED, RECORD):
            assert after[path][1] == before[path][1] and after[path][2] > before[path][2]
        assert after["tiny/alpha.py"][1] == 0o640 and after["tiny/sub/beta.py"][1] == 0o755
        assert after[ADDED][1] == (world.site / "tiny").stat().st_mode & 0o664

    def test_again_writes_nothing(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.apply()
        before = world.footprint()
        monkeypatch.delattr(transaction, "commit")
        report = world.apply()
        assert world.footprint() == before
        assert [step.outcome for step in report.steps] == [StepOutcome.ALREADY] * 3

    def test_leaves_the_bytes_of_other_hard_links(self, world: World, tmp_path: Path) -> None:
        """uv and conda link installed files to a cache that other environments share (uv #9890)."""
        links = {path: tmp_path / path.replace("/", "-") for path in (*CHANGED, RECORD)}
        for path, link in links.items():
            os.link(world.site / path, link)
        pristine = {path: world.read(path) for path in links}
        world.apply()
        assert {path: link.read_bytes() for path, link in links.items()} == pristine
        assert all((world.site / path).stat().st_ino != link.stat().st_ino for path, link in links.items())
        world.revert()
        assert {path: link.read_bytes() for path, link in links.items()} == pristine

    @pytest.mark.parametrize("path", ["tiny/alpha.py", "tiny/sub"])
    def test_refuses_what_lies_behind_a_symbolic_link(self, world: World, tmp_path: Path, path: str) -> None:
        (world.site / path).rename(tmp_path / "elsewhere")
        (world.site / path).symlink_to(tmp_path / "elsewhere")
        before = world.footprint()
        with pytest.raises(EnvironmentRefused, match="symbolic link") as caught:
            world.apply()
        assert "--link-mode copy" in caught.value.remedy
        assert world.footprint() == before

    def test_refuses_a_file_that_changes_between_plan_and_write(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin = transaction._Work.begin

        def late(work: transaction._Work, *args: object) -> None:
            (world.site / "tiny/sub/beta.py").write_bytes(b"class Args:\r\n    size: int = 7\r\n")
            begin(work, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(transaction._Work, "begin", late)
        with pytest.raises(Conflict, match=r"tiny/sub/beta\.py changed since it was planned"):
            world.apply()
        assert world.read("tiny/alpha.py") == MODULES["tiny/alpha.py"].encode()
        assert world.read("tiny/sub/beta.py") == b"class Args:\r\n    size: int = 7\r\n"
        assert not world.state.exists() and not (world.site / "tiny/made").exists()

    def test_goes_back_where_a_check_fails(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        before = world.footprint()
        failed = CheckResult(Tier.IMPORT, "imports", CheckOutcome.FAILED, "it does not")
        monkeypatch.setattr("ddtree_patcher.operations.applying.run_tiers", lambda *_: (failed,))
        report = world.apply(Tier.IMPORT)
        assert report.exit_code is ExitCode.VERIFICATION_FAILED
        assert [step.outcome for step in report.steps] == [StepOutcome.PENDING] * 3
        assert {item.code for item in report.diagnostics} == {"verification_failed", "rolled_back"}
        assert world.footprint() == before

    def test_goes_back_where_a_required_tier_did_not_run(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        before = world.footprint()
        absent = CheckResult(Tier.IMPORT, "imports", CheckOutcome.NOT_RUN, "torch is not installed")
        monkeypatch.setattr("ddtree_patcher.operations.applying.run_tiers", lambda *_: (absent,))
        assert world.apply(Tier.IMPORT).exit_code is ExitCode.OK
        world.revert()
        report = apply(world.session(), planning.Selection(), Verification(Tier.IMPORT, Tier.IMPORT))
        assert report.exit_code is ExitCode.VERIFICATION_FAILED
        assert world.footprint() == before

    def test_a_conflict_writes_nothing(self, world: World) -> None:
        (world.site / "tiny/alpha.py").write_bytes(b"value = 'mine'\n")
        before = world.footprint()
        report = world.apply()
        assert report.exit_code is ExitCode.CONFLICT
        assert {"foreign", "anchor_missing"} <= {item.code for item in report.diagnostics}
        assert world.footprint() == before


class TestRevert:
    def test_brings_every_byte_mode_and_time_back(self, world: World) -> None:
        before = world.footprint()
        world.apply()
        report = world.revert()
        assert (report.exit_code, report.outcome) == (ExitCode.OK, "clean")
        assert world.footprint() == before
        assert world.status() == "clean"

    def test_without_an_application_does_nothing(self, world: World) -> None:
        before = world.footprint()
        assert world.revert().exit_code is ExitCode.OK
        assert world.footprint() == before

    def test_leaves_a_folder_that_somebody_else_uses(self, world: World) -> None:
        world.apply()
        (world.site / "tiny/made/theirs.txt").write_text("kept")
        world.revert()
        assert (world.site / "tiny/made/theirs.txt").read_text() == "kept"
        assert not (world.site / "tiny/made/deep").exists()

    @pytest.mark.parametrize("path", [CHANGED[0], ADDED])
    def test_refuses_to_lose_an_edit_unless_told(self, world: World, path: str) -> None:
        before = world.footprint()
        world.apply()
        (world.site / path).write_bytes(b"mine = 1\n")
        edited = world.footprint()
        report = world.revert()
        assert report.exit_code is ExitCode.CONFLICT
        assert [(item.code, item.path) for item in report.diagnostics] == [("edited", ""), ("foreign", path)]
        assert world.footprint() == edited
        assert world.status() == "drifted"
        assert world.revert(discard_edits=True).exit_code is ExitCode.OK
        assert world.footprint() == before

    def test_brings_back_a_file_that_was_deleted(self, world: World) -> None:
        before = world.footprint()
        world.apply()
        (world.site / CHANGED[0]).unlink()
        (world.site / ADDED).unlink()
        assert world.revert().exit_code is ExitCode.OK
        assert world.footprint() == before

    def test_brings_a_mode_back_that_was_changed_meanwhile(self, world: World) -> None:
        before = world.footprint()
        world.apply()
        (world.site / CHANGED[0]).chmod(0o600)
        world.revert()
        assert world.footprint() == before

    def test_after_a_reinstallation_removes_what_was_added(self, world: World) -> None:
        before = world.contents()
        pristine = {path: world.read(path) for path in (*CHANGED, RECORD)}
        world.apply()
        for path, data in pristine.items():
            (world.site / path).write_bytes(data)
        assert world.status() == "wiped"
        assert world.revert().exit_code is ExitCode.OK
        assert world.contents() == before


class TestRecord:
    def test_rows_of_added_files_are_appended(self, world: World) -> None:
        before = world.read(RECORD)
        world.apply()
        after = world.read(RECORD)
        assert after.startswith(before)
        assert after[len(before) :].startswith(ADDED.encode() + b",sha256=") and after.endswith(b",6\r\n")

    def test_and_removed(self, world: World) -> None:
        before = world.footprint()[RECORD]
        world.apply()
        world.revert()
        assert world.footprint()[RECORD] == before

    def test_rows_that_another_tool_adds_meanwhile_stay(self, world: World) -> None:
        before = world.read(RECORD)
        world.apply()
        with open(world.site / RECORD, "ab") as file:
            file.write(b"tiny/theirs.py,,\r\n")
        world.revert()
        assert world.read(RECORD) == before + b"tiny/theirs.py,,\r\n"

    def test_stays_as_it_is_where_nothing_is_added(self, world: World) -> None:
        world.write_patchset(content=None)
        before = world.footprint()[RECORD]
        world.apply()
        assert world.footprint()[RECORD] == before

    def test_has_each_added_file_once_after_many_applications(self, world: World) -> None:
        pristine = world.footprint()
        for number in range(3):
            world.write_patchset(version=str(number), content=b"y = %d\n" % number)
            assert world.apply().exit_code is ExitCode.OK
            assert world.read(RECORD).count(ADDED.encode()) == 1
        world.revert()
        assert world.footprint() == pristine


class TestAnotherPatchset:
    def test_is_computed_from_pristine_bytes(self, world: World) -> None:
        pristine = world.footprint()
        world.apply()
        world.write_patchset(version="2", value="newer", content=None)
        assert world.status() == "outdated"
        report = world.apply(Tier.STATIC)
        assert report.exit_code is ExitCode.OK, report.diagnostics
        assert world.read("tiny/alpha.py") == b"import os\n\nvalue = 'newer'\n"
        assert not (world.site / "tiny/made/deep/extra.py").exists()
        assert world.read(RECORD) == pristine[RECORD][0]
        assert world.status() == "applied"
        world.revert()
        assert world.footprint() == pristine

    def test_gives_files_back_that_it_does_not_touch(self, world: World) -> None:
        pristine = world.footprint()
        world.apply()
        world.apply(through="value")
        assert world.footprint()["tiny/sub/beta.py"] == pristine["tiny/sub/beta.py"]
        assert world.read("tiny/alpha.py") == b"import os\n\nvalue = 'new'\n"
        world.revert()
        assert world.footprint() == pristine


class TestChanges:
    """The transaction itself, without a patchset."""

    def commit(self, world: World, *changes: Change, fails: bool = False) -> None:
        session = world.session()
        outcome = replace(PASSED, outcome=CheckOutcome.FAILED) if fails else PASSED
        transaction.commit(world.site, session.store, changes, None, lambda: (outcome,))

    def test_a_removal_is_undone_with_mode_and_time(self, world: World) -> None:
        before = world.footprint()
        change = Change("tiny/alpha.py", None, sha256(world.read("tiny/alpha.py")))
        self.commit(world, change, fails=True)
        assert world.footprint() == before
        self.commit(world, change)
        assert not (world.site / "tiny/alpha.py").exists()

    def test_the_mode_of_a_read_only_file_stays(self, world: World) -> None:
        target = world.site / "tiny/alpha.py"
        target.chmod(0o444)
        self.commit(world, Change("tiny/alpha.py", b"x\n", sha256(world.read("tiny/alpha.py"))))
        assert stat.S_IMODE(target.stat().st_mode) == 0o444 and target.read_bytes() == b"x\n"

    def test_a_file_that_was_replaced_by_its_own_bytes_gets_its_time_back(self, world: World) -> None:
        before, data = world.footprint(), world.read("tiny/alpha.py")
        self.commit(world, Change("tiny/alpha.py", data, sha256(data)), fails=True)
        assert world.footprint() == before

    def test_the_state_is_written_only_after_every_file_was_read_back(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []
        real = transaction._Work.read_back
        monkeypatch.setattr(transaction._Work, "read_back", lambda work: (seen.append(work.store.state()), real(work)))
        world.apply()
        assert seen == [None] and world.status() == "applied"

    @pytest.mark.parametrize("path", ["../outside.py", "/outside.py", "tiny/../../outside.py", ""])
    def test_a_path_that_leaves_the_tree_is_refused(self, world: World, path: str) -> None:
        before = world.footprint()
        with pytest.raises(ValueError, match="leaves the tree"):
            self.commit(world, Change(path, b"x", ""))
        assert world.footprint() == before and not (world.base / "outside.py").exists()

    def test_bytes_that_read_back_differently_are_put_back(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        before = world.footprint()
        replace_all = transaction._Work.replace

        def spoil(work: transaction._Work, empty: Sequence[str]) -> None:
            replace_all(work, empty)
            monkeypatch.setattr(transaction, "_digest", lambda path, real=transaction._digest: real(path)[::-1])

        monkeypatch.setattr(transaction._Work, "replace", spoil)
        monkeypatch.setattr(
            transaction, "_restore", lambda *args, real=transaction._restore: (monkeypatch.undo(), real(*args))
        )
        with pytest.raises(Exception, match="reads back differently"):
            world.apply()
        assert world.footprint() == before


def test_a_rewritten_record_is_noticed_and_mended(world: World) -> None:
    world.apply()
    whole = world.read(RECORD)
    rows = [line for line in whole.splitlines(keepends=True) if not line.startswith(ADDED.encode())]
    assert len(rows) < len(whole.splitlines())
    (world.site / RECORD).write_bytes(b"".join(rows))
    found = {check.id: check.outcome for check in verify(world.session(), Tier.STATIC, None).checks}
    assert found["added-files-recorded"] is CheckOutcome.FAILED
    assert world.apply().exit_code is ExitCode.OK
    assert world.read(RECORD) == whole
    found = {check.id: check.outcome for check in verify(world.session(), Tier.STATIC, None).checks}
    assert found["added-files-recorded"] is CheckOutcome.PASSED
