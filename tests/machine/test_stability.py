"""Twice the same: with other hash seeds, and on another folder. Only what docs/machine-output.md names may differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.wheels
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "machine-output.md"
FORMS = ("junit", "sarif", "code-quality")
COMMANDS = {
    "plan": ("plan", "--diff"),
    "doctor": ("doctor",),
    "verify": ("verify", "--tier", "static"),
    "diff": ("diff", "--snapshot", "0.5.11"),
}
# What the page says is not to be compared, and what another folder changes.
NEVER = ("seconds",)
ELSEWHERE = ("root", "python", "python_version", "state_dir", "direct_url", "out")


def without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value


@pytest.fixture
def site(tree: Callable[..., Path]) -> Callable[[str], Path]:
    """``site(name)``: a tree with findings: an anchor is gone, and files are edited."""

    def make(name: str) -> Path:
        folder = tree("0.5.18", name)
        path = folder / SPEC_INFO
        path.write_bytes(path.read_bytes().replace(b"DFLASH = auto()", b"OTHER = auto()"))
        for other in ("sglang/srt/server_args.py", "sglang/srt/managers/scheduler.py"):
            (folder / other).write_bytes((folder / other).read_bytes() + b"\n# edited\n")
        return folder

    return make


def test_the_page_names_what_is_left_out() -> None:
    _, _, section = PAGE.read_text("utf-8").partition("## What stays the same")
    named = set(re.findall(r"`(?:installation\.)?([a-z_]+)`", section.partition("\n## ")[0]))
    assert {*NEVER, *ELSEWHERE, "at", "time"} <= named


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_again_and_elsewhere(
    site: Callable[[str], Path], run_cli: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    one, two = site("one"), site("an other")
    runs = []
    for number, (folder, seed) in enumerate(((one, "0"), (one, "12345"), (two, "7"))):
        paths = {form: tmp_path / f"{form}-{number}" for form in FORMS}
        options = [word for form, path in paths.items() for word in (f"--{form}", path)]
        result = run_cli("--root", folder, *COMMANDS[command], *options, env={"PYTHONHASHSEED": seed})
        files = {form: path.read_text("utf-8") for form, path in paths.items()}
        files["junit"] = re.sub(r' time="[0-9.]+"', "", files["junit"])
        runs.append((result, files, str(folder)))
    first, again, elsewhere = (json.dumps(without(result.json, NEVER)) for result, _, _ in runs)
    assert first == again
    moved = json.loads(elsewhere.replace(runs[2][2], runs[0][2]))
    assert without(json.loads(first), ELSEWHERE) == without(moved, ELSEWHERE)
    assert runs[0][1] == runs[1][1] == runs[2][1]
    assert len(json.loads(runs[0][1]["sarif"])["runs"][0]["results"]) >= (2 if command != "diff" else 0)
