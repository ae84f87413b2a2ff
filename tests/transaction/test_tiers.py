"""The tiers that run what is applied: smoke and e2e, from the command line to the patchset's own programs."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

import schemas
from ddtree_patcher.cli import main

from .world import World

TOOL = str(Path(sys.executable).with_name("ddtree-patch"))
WIRED = "def checks():\n    yield 'wired', lambda: 'it is'\n"
RUNS = textwrap.dedent(
    """
    def checks():
        yield "patched", patched
        yield "tokens", tokens

    def patched():
        import tiny.alpha
        assert tiny.alpha.value == "new"
        return tiny.alpha.__file__

    def tokens():
        yield {"algorithm": "DFLASH", "budget": None, "tokens equal": True, "acceptance length": 2.5, "steps": 20}
        yield {"algorithm": "DDTREE", "budget": 16, "tokens equal": True, "acceptance length": 3.126, "steps": 16}
        return "2 runs"
    """
)
FAILS = RUNS.replace('return "2 runs"', 'raise AssertionError("token 7 differs")')
FORKS = textwrap.dedent(
    """
    import os, time
    def checks():
        yield "forks", forks
    def forks():
        yield "half [/way]"
        if os.fork() == 0:
            os.fork()
        with open(os.environ["NOTE"], "a") as note:
            note.write(f"{os.getpid()}\\n")
        time.sleep(300)
    """
)


def call(world: World, *args: str, env: dict[str, str] | None = None) -> Result:
    """The command line, inside this process."""
    options = ["--root", str(world.site), "--patchset", str(world.patchset)]
    return CliRunner(env=env).invoke(main, [*options, *args])


def verify(world: World, *args: str, code: int = 0) -> Any:
    """The JSON report of ``verify --tier e2e`` or what is said instead; nothing is written below the site."""
    before = world.footprint()
    result = call(world, "--format", "json", "verify", *(args or ("--tier", "e2e")))
    assert result.exit_code == code, result.output
    assert world.footprint() == before
    report = json.loads(result.stdout)
    assert schemas.complaints(report) == []
    return report


def outcomes(report: Any, tier: str) -> dict[str, str]:
    return {item["id"]: item["outcome"] for item in report["checks"] if item["tier"] == tier}


def details(report: Any, tier: str) -> str:
    return " ".join(item["detail"] for item in report["checks"] if item["tier"] == tier)


def applied(world: World, **programs: str) -> World:
    world.write_patchset(programs=programs)
    assert world.apply().outcome == "ok"
    return world


class TestWhatRuns:
    def test_e2e_runs_after_all_others_where_it_is_asked_for(self, world: World) -> None:
        applied(world, smoke=WIRED, e2e=RUNS)
        report = verify(world)
        assert list(dict.fromkeys(item["tier"] for item in report["checks"])) == ["static", "import", "smoke", "e2e"]
        assert {item["outcome"] for item in report["checks"]} == {"passed"}
        assert str(world.site / "tiny") in details(report, "e2e")

    @pytest.mark.parametrize("args", [("--tier", "smoke"), ("--junit", os.devnull)])
    def test_and_never_where_it_is_not(self, world: World, args: tuple[str, ...]) -> None:
        report = verify(applied(world, smoke=WIRED, e2e="raise SystemExit('it was run')"), *args)
        assert {item["tier"] for item in report["checks"]} == {"static", "import", "smoke"}

    def test_apply_stays_with_smoke(self, world: World) -> None:
        world.write_patchset(programs={"smoke": WIRED, "e2e": FAILS})
        result = call(world, "--format", "json", "apply")
        assert result.exit_code == 0
        assert {item["tier"] for item in json.loads(result.stdout)["checks"]} == {"static", "import", "smoke"}

    @pytest.mark.parametrize("option", ["--verify", "--require"])
    def test_apply_can_be_asked_for_it_and_rolls_back(self, world: World, option: str) -> None:
        before = world.contents()
        world.write_patchset(programs={"smoke": WIRED, "e2e": FAILS})
        failed = call(world, "--format", "json", "apply", option, "e2e")
        report = json.loads(failed.stdout)
        assert (failed.exit_code, outcomes(report, "e2e")) == (5, {"patched": "passed", "tokens": "failed"})
        assert world.contents() == before
        world.write_patchset(programs={"smoke": WIRED, "e2e": RUNS})
        assert call(world, "apply", option, "e2e").exit_code == 0

    @pytest.mark.parametrize(
        ("broken", "reason"),
        [
            ("static", "the static tier failed"),
            ("import", "the import tier failed"),
            ("smoke", "the smoke tier failed"),
        ],
    )
    def test_a_failure_before_it_stops_it(self, world: World, broken: str, reason: str) -> None:
        smoke = FAILS if broken == "smoke" else WIRED
        if broken == "import":
            world.write_patchset(content=b"raise RuntimeError\n", programs={"smoke": smoke, "e2e": "raise SystemExit"})
            world.apply()
        else:
            applied(world, smoke=smoke, e2e="raise SystemExit('it was run')")
        if broken == "static":
            (world.site / "tiny/alpha.py").write_text("value = 'edited'\n")
        report = verify(world, code=5)
        assert "failed" in outcomes(report, broken).values()
        assert outcomes(report, "e2e") == {"e2e": "not_run"}
        assert details(report, "e2e") == reason


class TestHowItEnds:
    def test_a_failed_check_fails_the_command_and_keeps_its_rows(self, world: World) -> None:
        report = verify(applied(world, e2e=FAILS), code=5)
        assert outcomes(report, "e2e") == {"patched": "passed", "tokens": "failed"}
        assert [row["budget"] for row in report["checks"][-1]["rows"]] == [None, 16]
        (what,) = report["diagnostics"]
        assert (what["code"], "token 7 differs" in what["detail"]) == ("verification_failed", True)

    def test_a_missing_package_makes_it_not_run(self, world: World) -> None:
        applied(world, smoke=WIRED, e2e=f"import surely_not_installed\n{RUNS}")
        assert outcomes(verify(world), "e2e") == {"e2e": "not_run"}
        report = verify(world, "--require", "e2e", code=5)
        (what,) = report["diagnostics"]
        assert what["code"] == "not_run"
        assert what["summary"].startswith("the e2e tier is required and did not run: surely_not_installed ")

    def test_a_patchset_without_a_program(self, world: World) -> None:
        applied(world, smoke=WIRED)
        report = verify(world)
        assert outcomes(report, "e2e") == {"e2e": "not_run"}
        assert details(report, "e2e") == "this patchset has no e2e program"
        (what,) = verify(world, "--require", "e2e", code=5)["diagnostics"]
        assert what["summary"] == "the e2e tier is required and did not run: this patchset has no e2e program"

    def test_without_a_smoke_program_it_runs_and_is_not_enough_for_require(self, world: World) -> None:
        applied(world, e2e=RUNS)
        assert set(outcomes(verify(world), "e2e").values()) == {"passed"}
        (what,) = verify(world, "--require", "e2e", code=5)["diagnostics"]
        assert what["summary"].startswith("the smoke tier is required and did not run")

    def test_a_crash(self, world: World) -> None:
        applied(world, e2e="import os\ndef checks():\n    yield 'one', os.abort\n")
        report = verify(world, code=5)
        assert outcomes(report, "e2e") == {"e2e": "failed"}
        assert "ended by signal 6 before it answered (one)" in details(report, "e2e")

    def test_the_time_limit(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        applied(world, e2e="import time\ndef checks():\n    yield 'one', lambda: time.sleep(300)\n")
        monkeypatch.setattr("ddtree_patcher.verification.tiers.LIMITS", dict.fromkeys(("smoke", "e2e"), 1.0))
        assert "no answer within 1 seconds" in details(verify(world, code=5), "e2e")


class TestReports:
    def test_json_has_rows_for_every_check(self, world: World) -> None:
        report = verify(applied(world, smoke=WIRED, e2e=RUNS))
        assert {len(item["rows"]) for item in report["checks"][:-1]} == {0}
        assert report["checks"][-1]["rows"] == [
            {"algorithm": "DFLASH", "budget": None, "tokens equal": True, "acceptance length": 2.5, "steps": 20},
            {"algorithm": "DDTREE", "budget": 16, "tokens equal": True, "acceptance length": 3.126, "steps": 16},
        ]

    @pytest.mark.parametrize("columns", [60, 80])
    def test_text_has_a_table(self, world: World, columns: int) -> None:
        text = call(applied(world, e2e=RUNS), "verify", "--tier", "e2e", env={"COLUMNS": str(columns)}).stdout
        lines = [line.split() for line in text.splitlines()]
        assert ["DFLASH", "-", "yes", "2.50", "20"] in lines
        assert ["DDTREE", "16", "yes", "3.13", "16"] in lines
        assert max(len(line) for line in text.splitlines() if "DDTREE " in line) <= columns

    def test_text_tells_a_long_reason_once(self, world: World) -> None:
        applied(world, e2e=FAILS.replace("differs", "differs\\nthe scheduler said so"))
        text = call(world, "verify", "--tier", "e2e").stdout
        assert (text.count("token 7 differs"), text.count("the scheduler said so")) == (2, 1)

    def test_quiet_text_has_none(self, world: World) -> None:
        result = call(applied(world, e2e=RUNS), "-q", "verify", "--tier", "e2e")
        assert [line.split()[0] for line in result.stdout.splitlines() if line] == ["verify:"]
        assert result.stderr == ""

    def test_junit_has_the_rows_as_output(self, world: World, tmp_path: Path) -> None:
        applied(world, e2e=FAILS.replace("token 7 differs", "token \\x1b[31m7\\x1b[0m \\x00 differs"))
        call(world, "verify", "--tier", "e2e", "--junit", str(tmp_path / "report.xml"))
        cases = ElementTree.parse(tmp_path / "report.xml").getroot().findall(".//testcase")
        (tokens,) = [case for case in cases if case.get("name") == "tokens"]
        assert tokens.get("classname") == "ddtree-patch.e2e"
        assert "token 7   differs" in (tokens.findtext("failure") or "")
        output = tokens.findtext("system-out") or ""
        assert output.splitlines()[1].startswith("algorithm=DDTREE, budget=16, tokens equal=True")


SLOW = textwrap.dedent(
    """
    import time
    def checks():
        yield "first", lambda: ""
        yield "slow", slow
    def slow():
        yield "half [/way]"
        time.sleep(3)
    """
)


class TestProgress:
    def run(self, world: World, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(world, *args), capture_output=True, text=True, check=False, **options)

    def test_lines_on_standard_error(self, world: World) -> None:
        done = self.run(applied(world, e2e=SLOW), "--format", "json", "verify", "--tier", "e2e")
        assert json.loads(done.stdout)["outcome"] == "ok"
        assert done.stderr.splitlines() == ["… e2e: 1 passed; now slow: half [/way]"]

    def test_none_where_quiet_is_asked_for(self, world: World) -> None:
        assert self.run(applied(world, e2e=SLOW), "-q", "verify", "--tier", "e2e").stderr == ""

    @pytest.mark.parametrize("colour", [True, False])
    def test_a_moving_line_on_a_terminal(self, world: World, colour: bool) -> None:
        applied(world, e2e=SLOW)
        control, terminal = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": "" if colour else "1"}
        with subprocess.Popen(
            command(world, "verify", "--tier", "e2e"),
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            env=env,
        ):
            os.close(terminal)
            seen = b""
            while True:
                try:
                    part = os.read(control, 65536)
                except OSError:
                    break
                seen += part
        os.close(control)
        assert "1 passed; now slow: half [/way]" in seen.decode()
        assert (b"\x1b" in seen) is colour


class TestInterruption:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda item: item.name)
    @pytest.mark.parametrize(
        "args", [("verify", "--tier", "e2e"), ("apply", "--verify", "e2e")], ids=lambda item: item[0]
    )
    def test_kills_what_the_program_started(
        self, world: World, tmp_path: Path, args: Sequence[str], number: signal.Signals
    ) -> None:
        world.write_patchset(programs={"e2e": FORKS})
        if args[0] == "verify":
            world.apply()
        before, note = world.contents(), tmp_path / "pids"
        with subprocess.Popen(
            command(world, "--format", "json", *args),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "NOTE": str(note)},
        ) as process:
            pids = _wait_for(note, 3)
            process.send_signal(number)
            answer, _ = process.communicate(timeout=30)
        report = json.loads(answer)
        assert (process.returncode, report["exit_name"]) == (8, "interrupted")
        assert f"stopped by {number.name}" in report["diagnostics"][-1]["summary"]
        assert all(map(_ends, pids))
        assert world.contents() == before


def command(world: World, *args: str) -> list[str]:
    return [TOOL, "--root", str(world.site), "--patchset", str(world.patchset), *args]


def _wait_for(note: Path, count: int) -> list[int]:
    for _ in range(600):
        pids = [int(line) for line in note.read_text().split()] if note.exists() else []
        if len(pids) >= count:
            return pids
        time.sleep(0.05)
    raise AssertionError(f"fewer than {count} processes in 30 seconds")


def _ends(pid: int) -> bool:
    """Whether a process ends within a few seconds (one that nobody reaps has ended too)."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False
