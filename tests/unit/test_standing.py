"""Is it a release that the snapshots know, a build that nobody has looked at, or a mixture? On real snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from ddtree_patcher.model import CheckOutcome, CheckResult, Diagnostic, Severity, Tier
from ddtree_patcher.operations.standing import Build, Judgement, Standing, judge_release, proved_by
from ddtree_patcher.snapshot import FileFingerprint, load

OLD, NEW, NEWEST = "0.5.11", "0.5.13.post1", "0.5.23"
SERVER_ARGS = "sglang/srt/server_args.py"
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
NOBODYS = "0" * 64


@cache
def digests(version: str) -> Mapping[str, str]:
    files = load(version).files
    return {path: file.sha256 for path, file in files.items() if isinstance(file, FileFingerprint)}


def nothing(path: str) -> bytes:
    raise FileNotFoundError(path)


def judge(
    version: str,
    recorded: Mapping[str, str],
    edited: Mapping[str, str] | None = None,
    *,
    supports: str = ">=0.5.11",
    allow_drift: bool = False,
    distribution: str = "sglang",
) -> Judgement:
    build = Build(distribution, version, supports, lambda path: recorded.get(path, ""), edited or {})
    return judge_release(build, nothing, allow_drift=allow_drift)


def only(judgement: Judgement) -> Diagnostic:
    (found,) = judgement.diagnostics
    return found


class TestKnown:
    @pytest.mark.parametrize("version", [OLD, NEW, NEWEST])
    def test_its_files_are_those_of_its_release(self, version: str) -> None:
        assert judge(version, digests(version)) == Judgement(Standing.KNOWN)

    def test_a_file_that_record_does_not_list_proves_nothing_against_it(self) -> None:
        """An editable installation lists none."""
        assert judge(OLD, {}).standing is Standing.KNOWN

    def test_a_distribution_without_snapshots_is_judged_by_its_version_alone(self) -> None:
        assert judge("1.0", {}, distribution="other", supports=">=1") == Judgement(Standing.KNOWN)
        assert (
            "made for other >=2, and this is 1.0"
            in only(judge("1.0", {}, distribution="other", supports=">=2")).summary
        )

    @pytest.mark.parametrize(("version", "supports"), [("", ">=2"), ("1.0", "of any kind")])
    def test_what_is_no_version_or_no_specifier_says_nothing(self, version: str, supports: str) -> None:
        assert judge(version, {}, distribution="other", supports=supports).diagnostics == ()

    def test_a_release_that_the_patchset_does_not_name_is_told(self) -> None:
        what = only(judge(NEWEST, digests(NEWEST), supports="<0.5.20"))
        assert (what.code, what.severity) == ("unproved", Severity.WARNING)


class TestUnproved:
    @pytest.mark.parametrize("version", ["0.5.24", "0.6.0", "0.5.13.post1+local", "0.5.12.dev3"])
    def test_a_version_without_a_snapshot_is_compared_by_its_code(self, version: str) -> None:
        """Of an empty tree the absent files are all that is alike."""
        judgement = judge(version, {})
        assert (judgement.standing, judgement.diagnostics[0].severity) == (Standing.UNPROVED, Severity.WARNING)
        assert judgement.agreement < 0.1
        assert f"the nearest is {judgement.nearest}: " in judgement.diagnostics[0].summary
        assert f"({judgement.agreement:.1%})" in judgement.diagnostics[0].summary
        assert "verify --tier e2e" in judgement.diagnostics[0].remedy

    def test_a_known_number_on_code_of_no_release(self) -> None:
        judgement = judge(OLD, {**digests(OLD), SERVER_ARGS: NOBODYS})
        assert (judgement.standing, judgement.nearest) == (Standing.UNPROVED, OLD)
        assert f"1 of {len(load(OLD).files)} watched files" in only(judgement).summary
        assert SERVER_ARGS in only(judgement).detail and only(judgement).path == SERVER_ARGS

    def test_an_edit_is_not_taken_for_another_build(self) -> None:
        """It is told as an edit."""
        assert judge(OLD, digests(OLD), {SERVER_ARGS: NOBODYS}).standing is Standing.KNOWN


class TestMixed:
    def test_a_file_of_another_release_for_which_record_vouches(self) -> None:
        judgement = judge(NEW, {**digests(NEW), SERVER_ARGS: digests(OLD)[SERVER_ARGS]})
        assert (judgement.standing, judgement.mixed) == (Standing.MIXED, {SERVER_ARGS})
        what = only(judgement)
        assert (what.code, what.severity, what.path) == ("mixed", Severity.ERROR, SERVER_ARGS)
        assert what.summary == f"{SERVER_ARGS} is the file of sglang {OLD}, and this is {NEW}"
        assert "came with the wheel" in what.detail
        assert f"sglang=={NEW}" in what.remedy

    def test_a_file_of_another_release_that_record_denies(self) -> None:
        what = only(judge(NEW, digests(NEW), {SERVER_ARGS: digests(OLD)[SERVER_ARGS]}))
        assert what.summary == f"{SERVER_ARGS} is the file of sglang {OLD}, and this is {NEW}"
        assert "copied there after the installation" in what.detail

    def test_a_file_of_another_release_in_one_that_nobody_knows(self) -> None:
        assert judge("0.5.99", {}, {SERVER_ARGS: digests(OLD)[SERVER_ARGS]}).standing is Standing.MIXED

    def test_a_file_that_its_own_release_does_not_have(self) -> None:
        registry = "sglang/srt/speculative/spec_registry.py"
        judgement = judge(OLD, {**digests(OLD), registry: digests(NEW)[registry]})
        assert registry in only(judgement).summary and NEW in only(judgement).summary

    def test_files_of_one_release_are_told_together(self) -> None:
        """The number of one release on another one's files: which of both is wrong is not for the tool to guess."""
        what = only(judge(OLD, digests(NEWEST)))
        assert f"more are the files of sglang {NEWEST}, and this is {OLD}" in what.summary
        assert {SERVER_ARGS, SPEC_INFO} <= set(what.detail.splitlines())

    def test_files_of_two_other_releases_are_told_apart(self) -> None:
        recorded = {**digests(NEW), SERVER_ARGS: digests(OLD)[SERVER_ARGS], SPEC_INFO: digests(NEWEST)[SPEC_INFO]}
        told = {item.path: item.summary for item in judge(NEW, recorded).diagnostics}
        assert OLD in told[SERVER_ARGS] and NEWEST in told[SPEC_INFO]

    def test_it_is_a_warning_to_who_wants_it_so(self) -> None:
        what = only(judge(NEW, {**digests(NEW), SERVER_ARGS: digests(OLD)[SERVER_ARGS]}, allow_drift=True))
        assert (what.code, what.severity) == ("mixed", Severity.WARNING)


class TestProvedBy:
    UNPROVED = Judgement(Standing.UNPROVED, NEWEST, 0.9)

    def checks(self, **outcomes: CheckOutcome) -> list[CheckResult]:
        return [CheckResult(Tier(name), "one", outcome) for name, outcome in outcomes.items()]

    def test_names_the_tiers_that_passed(self) -> None:
        ran = self.checks(static=CheckOutcome.PASSED, **{"import": CheckOutcome.PASSED}, smoke=CheckOutcome.NOT_RUN)
        (what,) = proved_by(self.UNPROVED, ran, Tier.E2E)
        assert "proved of it here: static, import;" in what.summary and what.severity is Severity.WARNING
        assert "--tier e2e" in what.remedy

    def test_the_real_engine_is_the_proof(self) -> None:
        (what,) = proved_by(self.UNPROVED, self.checks(static=CheckOutcome.PASSED, e2e=CheckOutcome.PASSED), Tier.E2E)
        assert what.severity is Severity.NOTE and "proved that it works" in what.summary

    def test_the_last_tier_of_a_patchset_without_an_e2e_program_is_smoke(self) -> None:
        passed = CheckOutcome.PASSED
        (what,) = proved_by(self.UNPROVED, self.checks(static=passed, smoke=passed), Tier.SMOKE)
        assert what.severity is Severity.NOTE and "every tier passed" in what.summary
        (what,) = proved_by(self.UNPROVED, self.checks(static=passed), Tier.SMOKE)
        assert "e2e" not in what.summary + what.remedy and "--tier smoke" in what.remedy

    def test_what_failed_proves_nothing(self) -> None:
        (what,) = proved_by(self.UNPROVED, self.checks(static=CheckOutcome.PASSED, e2e=CheckOutcome.FAILED), Tier.E2E)
        assert "proved of it here: static;" in what.summary

    def test_of_a_known_release_nothing_is_said(self) -> None:
        assert proved_by(Judgement(Standing.KNOWN), self.checks(static=CheckOutcome.PASSED), Tier.E2E) == ()
