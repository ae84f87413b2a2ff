"""How trouble is said: on which stream, in which form, on which terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_site import APPLY, SERVER_ARGS, SPEC_INFO, Site, appending, refused, untouched
from click.testing import CliRunner

from ddtree_patcher.cli import main
from ddtree_patcher.model import ExitCode

TOOL = str(Path(sys.executable).parent / "ddtree-patch")
ESCAPE = "\x1b"


@pytest.fixture
def troubled(site) -> Site:
    """A site with something to say about it: one file is edited, and an anchor is gone."""
    here = site()
    here.edit(SPEC_INFO, lambda data: data.replace(b"DFLASH = auto()", b"OTHER = auto()"))
    return here


# --- options -----------------------------------------------------------------------------------------------------

USAGE = {
    "no command": ((), "Missing command"),
    "unknown command": (("frobnicate",), "No such command 'frobnicate'"),
    "unknown option": (("plan", "--bogus"), "No such option '--bogus'"),
    "unknown shared option": (("--bogus", "plan"), "No such option '--bogus'"),
    "unknown tier": (("verify", "--tier", "bogus"), "'bogus' is not one of 'static', 'import', 'smoke', 'e2e'"),
    "unknown requirement": (("apply", "--require", "none"), "'none' is not one of"),
    "option without value": (("verify", "--require"), "'--require' requires an argument"),
    "negative time": (("--lock-timeout", "-1", "plan"), "-1.0 is not in the range"),
    "time in words": (("--lock-timeout", "soon", "plan"), "'soon' is not a valid float"),
    "two plans": (("apply", "one", "two"), "unexpected extra argument"),
    "snapshot without command": (("snapshot",), ""),
    "snapshot without place": (("snapshot", "capture"), "Missing option '--out'"),
    "wheel that is not there": (("snapshot", "capture", "no.whl", "--out", "x"), "'no.whl' does not exist"),
    "report in no folder": (("--report", "no/folder/x.json", "status"), "no/folder/x.json"),
    "junit in no folder": (("verify", "--junit", "no/folder/x.xml"), "no/folder/x.xml"),
    "shared option after the command": (("plan", "--root", "x"), "--root goes before the command"),
    "unknown shell": (("completion", "tcsh"), "'tcsh' is not one of"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_options(bench, run, case, monkeypatch, tmp_path):
    here = bench()
    monkeypatch.chdir(tmp_path)
    args, says = USAGE[case]
    with untouched(tmp_path):
        first = refused(run(here, *args), ExitCode.USAGE, "usage", says)
        assert "--help" in first["remedy"]
        text = CliRunner().invoke(main, ["--root", str(here.folder), *args])
    assert text.exit_code == 2
    assert says in text.stderr
    assert (text.stdout, "Traceback" in text.output) == ("", False)


def test_an_unknown_format():
    result = CliRunner().invoke(main, ["--format", "xml", "status"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'xml' is not one of 'text', 'json'" in result.stderr


# --- JSON --------------------------------------------------------------------------------------------------------

EVERY = {
    "apply": (APPLY, 4),
    "diff": (("diff",), 0),
    "doctor": (("doctor",), 0),
    "plan": (("plan", "--diff"), 4),
    "revert": (("revert",), 0),
    "status": (("status",), 0),
    "verify": (("verify",), 5),
    "snapshot list": (("snapshot", "list"), 0),
    "snapshot capture": (("snapshot", "capture", "--out", "{tmp}/snapshot.json"), 0),
}


@pytest.mark.parametrize("command", EVERY)
@pytest.mark.parametrize("level", [(), ("-q",), ("-v",)])
def test_json_is_one_object_on_standard_output(troubled, run, tmp_path, command, level):
    args, code = EVERY[command]
    result = run(troubled, *(item.format(tmp=tmp_path) for item in args), shared=level)
    assert result.exit_code == code, result.stdout
    assert isinstance(json.loads(result.stdout), dict)
    assert result.stdout.startswith("{") and result.stdout.endswith("}\n")
    assert result.json["schema"] == f"ddtree-patch.{command.split()[0]}/1"
    assert result.json["exit_code"] == code
    assert result.json["exit_name"] == ExitCode(code).symbol
    if level == ("-q",):
        assert result.stderr == ""


@pytest.mark.parametrize(("args", "code"), [(("plan",), 4), (("plan", "--bogus"), 2)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_report_is_written_whatever_is_printed(troubled, tmp_path, args, code, form):
    shared = ["--root", str(troubled.folder), "--format", form]
    bare = CliRunner().invoke(main, [*shared, *args])
    result = CliRunner().invoke(main, [*shared, "--report", str(tmp_path / "report.json"), *args])
    assert (result.exit_code, result.stdout, result.stderr) == (code, bare.stdout, bare.stderr)
    written = (tmp_path / "report.json").read_text()
    assert json.loads(written)["exit_code"] == code and json.loads(written)["diagnostics"]
    assert form == "text" or written == result.stdout


def test_no_report_no_work(site, run, tmp_path):
    """A place that cannot be written is refused before anything is done."""
    here = site()
    with untouched(here.folder):
        refused(run(here, *APPLY, shared=("--report", tmp_path)), ExitCode.USAGE, "usage", "it is a folder")


def test_a_snapshot_is_shown_as_it_is_stored():
    result = CliRunner().invoke(main, ["--format", "json", "snapshot", "show", "0.5.11"])
    assert (result.exit_code, json.loads(result.stdout)["version"]) == (0, "0.5.11")


def test_json_of_a_fault_of_the_tool(bench, run, monkeypatch):
    """Even what nobody foresaw is a report: exit code 1, and the traceback inside it alone."""
    here = bench()
    monkeypatch.setattr("ddtree_patcher.operations.planning.draft", lambda *args: 1 / 0)
    with untouched(here.folder):
        result = run(here, *APPLY)
    report = result.json
    assert (result.exit_code, report["exit_code"], report["exit_name"]) == (1, 1, "error")
    (first,) = report["diagnostics"]
    assert "ZeroDivisionError" in first["summary"] and "Traceback" in first["detail"] and "report it" in first["remedy"]
    assert "Traceback" not in result.stderr


# --- text --------------------------------------------------------------------------------------------------------


@pytest.fixture
def text(troubled) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``text(*args, **env)``: the console script on the troubled site, its output into pipes."""

    def call(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [TOOL, "--root", str(troubled.folder), *args]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False)

    return call


def on_a_terminal(command: list[str], **env: str) -> str:
    """What a terminal of 80 columns gets to see."""
    control, terminal = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **env}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=settings) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                chunk = os.read(control, 65536)
            except OSError:  # the last writer is gone
                break
            if not chunk:
                break
            seen += chunk
        process.wait()
    os.close(control)
    return seen.decode()


@pytest.mark.parametrize("args", [("plan", "--diff"), ("status",), ("-q", "apply"), ("doctor",)])
def test_no_escape_codes_into_a_pipe(text, args):
    done = text(*args, TERM="xterm-256color")
    assert ESCAPE not in done.stdout + done.stderr


def test_no_escape_codes_where_colour_is_not_wanted(troubled):
    command = [TOOL, "--root", str(troubled.folder), "plan", "--diff"]
    assert ESCAPE in on_a_terminal(command, NO_COLOR="")
    plain = on_a_terminal(command, NO_COLOR="1")
    assert ESCAPE not in plain
    assert "somebody else edited" in plain


@pytest.mark.parametrize("columns", ["60", "20", "1"])
@pytest.mark.parametrize("args", [("plan",), ("status",), ("doctor",), ("diff",), ("snapshot", "list"), ("--help",)])
def test_narrow_terminals(troubled, columns, args):
    env = {"COLUMNS": columns}
    result = CliRunner(env=env).invoke(main, ["--root", str(troubled.folder), *args])
    assert isinstance(result.exception, SystemExit | None)
    assert result.exit_code in (0, 4)
    assert "Traceback" not in result.output


def test_a_narrow_terminal_keeps_every_message_whole(troubled):
    result = CliRunner(env={"COLUMNS": "60"}).invoke(main, ["--root", str(troubled.folder), "plan"])
    assert f"{SPEC_INFO}: somebody else edited this file\n" in result.stdout


def test_quiet_leaves_problems_and_the_closing_line(troubled, run):
    loud, quiet = (
        CliRunner().invoke(main, [*level, "--root", str(troubled.folder), "plan"]) for level in ((), ("-q",))
    )
    assert quiet.exit_code == loud.exit_code == 4
    lines = [line for line in quiet.stdout.splitlines() if line]
    assert lines[0].startswith("error [foreign] ")
    assert lines[1] == "  To build on it as it is: --allow-drift."
    assert lines[2].startswith("  remedy: ")
    assert lines[-1].startswith("plan: conflict") and lines[-1].endswith("exit 4")
    assert quiet.stderr == ""
    assert "blocked_by]" not in quiet.stdout and "blocked_by]" in loud.stdout


def test_quiet_success_is_one_line(site):
    result = CliRunner().invoke(main, ["-q", "--root", str(site().folder), *APPLY])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines() if line] == ["apply:"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_that_is_not_utf8(tmp_path, form):
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(name)
    command = [TOOL, "--format", form, "--root", os.fsdecode(name), "status"]
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, env=strict, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"has no sglang/__init__.py" in done.stdout


def test_a_terminal_that_knows_no_unicode(text):
    done = text("plan", PYTHONIOENCODING="ascii")
    assert done.returncode == 4
    assert "Traceback" not in done.stdout + done.stderr


def test_a_file_edited_in_two_ways_is_named_once(site, run):
    here = site()
    here.edit(SERVER_ARGS, appending(b"\n# a\n# b\n"))
    report = run(here, "plan").json
    assert [item["path"] for item in report["diagnostics"] if item["code"] == "foreign"] == [SERVER_ARGS]
