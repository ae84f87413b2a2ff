"""docs/ddtree.md, docs/benchmarks.md and the README say what the code says: flags, variables, numbers, commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ddtree_runtime import load_args
from sglang_releases import SUPPORTED

ROOT = Path(__file__).resolve().parents[2]
DDTREE = ROOT / "patchsets" / "ddtree"
PAGE = (ROOT / "docs" / "ddtree.md").read_text("utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
OPERATING = (ROOT / "docs" / "operating.md").read_text("utf-8")
RUNTIME = "\n".join(path.read_text("utf-8") for path in sorted((DDTREE / "runtime").glob("*.py")))
# One line each: continued lines are joined, comments are dropped.
COMMANDS = [
    line.partition(" #")[0].strip()
    for document in (PAGE, README, *(path.read_text("utf-8") for path in ROOT.glob("docs/*.md")))
    for block in re.findall(r"```\n(.*?)```", document, flags=re.S)
    for line in block.replace("\\\n", " ").splitlines()
]
SERVERS = sorted({line for line in COMMANDS if "sglang.launch_server" in line})
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.fixture(scope="module")
def ddtree_args() -> ModuleType:
    """The runtime module that holds the rules of the arguments; it imports nothing heavy."""
    return load_args()[0]


def section(heading: str) -> str:
    return PAGE.split(f"\n# {heading}\n")[1].split("\n# ")[0]


def test_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    documents = [path.read_text("utf-8") for path in ROOT.glob("docs/*.md")]
    named = re.findall(r"(?:^|`)make ([a-z-]+)\b", "\n".join([README, *documents]), flags=re.M)
    assert {"demo", "test", "bench", "acceptance"} <= set(named)
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


TOOLS = {"--tier", "--step"}  # options of the tool
REPLAY = {"--enable-linear-replayssm", "--enable-linear-replayssm-spec", "--enable-gdn-replayssm-spec"}

HAS_REPLAY = "0.5.18"  # the others have some of them, or none


@pytest.mark.wheels
@pytest.mark.parametrize("version", SUPPORTED)
def test_flags_of_the_server_exist(version: str, tree: Callable[..., Path], run_cli: Callable[..., Any]) -> None:
    site = tree(version)
    run_cli("--root", site, "apply", "--verify", "none").expect(0)
    srt = site / "sglang" / "srt"
    declared = "\n".join(
        path.read_text("utf-8") for path in (srt / "server_args.py", *srt.glob("arg_groups/fields/*.py"))
    )
    flags = set(FLAG.findall(" ".join([PAGE, *SERVERS]))) - TOOLS
    if version != HAS_REPLAY:
        flags -= REPLAY
    assert len(SERVERS) >= 2 and len(flags) > 15
    assert [flag for flag in sorted(flags) if not _is_declared(flag, declared)] == []


def _is_declared(flag: str, declared: str) -> bool:
    """By an option of the parser's, or by an annotated field of that name, of which SGLang makes one."""
    return f'"{flag}"' in declared or f"\n    {flag[2:].replace('-', '_')}: A[" in declared


def test_variables_are_those_that_the_runtime_reads() -> None:
    pattern = r"SGLANG_DDTREE_[A-Z_]+"
    read = set(re.findall(rf'= "({pattern})"', RUNTIME))
    table = set(re.findall(rf"^\| `({pattern})` \|", section("Environment variables"), flags=re.M))
    assert table == read == set(re.findall(pattern, PAGE))
    defaults = dict(re.findall(rf"^\| `({pattern})` \| (\S+) \|", PAGE, flags=re.M))
    for name, constant in re.findall(r'os\.environ\.get\((\w+), "(\d)"\)', RUNTIME):
        (variable,) = re.findall(rf'^{name} = "({pattern})"', RUNTIME, flags=re.M)
        assert defaults[variable] == constant


def test_words_that_switch_a_variable_off(ddtree_args: ModuleType) -> None:
    (sentence,) = re.findall(r"A value that is empty, (.*?) is off", section("Environment variables"), flags=re.S)
    for word in re.findall(r"`(\w+)`", sentence):
        assert not ddtree_args.is_on(word)
    assert not ddtree_args.is_on("") and ddtree_args.is_on("1")


def test_numbers_of_the_flags(ddtree_args: ModuleType) -> None:
    fragment = (DDTREE / "fragments" / "server_args.py").read_text("utf-8")
    for document in (PAGE, OPERATING):
        for name, default in re.findall(r"^\| `--speculative-ddtree-(budget|topk)` \| (\d+) \|", document, flags=re.M):
            assert f"speculative_ddtree_{name}: int = {default}\n" in fragment
        assert f"a budget above {ddtree_args.MAX_TREE_BUDGET}" in document
    assert f"1 to {ddtree_args.MAX_TREE_BUDGET}" in PAGE


def test_backends_and_width(ddtree_args: ModuleType) -> None:
    _, refusals = load_args()
    names = " or ".join(f"`{name}`" for name in refusals.TREE_MASK_BACKENDS)
    assert f"must apply a tree mask: {names}." in PAGE
    assert "max(budget + 1, B)" in section("Two widths")
    assert (ddtree_args.verify_width(32, 16), ddtree_args.verify_width(7, 16)) == (33, 16)


def test_log_lines_are_those_of_the_code() -> None:
    """Numbers and what is put in for them aside."""
    code = re.sub(r'"\s*f?"', "", RUNTIME)
    for line in re.findall(r"^DDTREE: .*$", PAGE, flags=re.M):
        for words in re.split(r"[\d.]+", line):
            assert words.strip(" ,.)") in code, line
    rows = re.findall(r"^\| ([a-z -]+) \| ", section("Numbers"), flags=re.M)
    assert rows[0] == "in the line"
    for name in rows[1:]:
        assert f"{name} {{" in code, name


def test_constants_of_the_patchset_are_named() -> None:
    names = re.findall(r"^(PATCHSET_\w+) = ", RUNTIME, flags=re.M)
    assert len(names) == 3 and set(re.findall(r"`(PATCHSET_\w+)`", PAGE)) == set(names)
    assert "`sglang.srt.speculative.ddtree_patchset`" in PAGE


def test_penalties_that_are_refused_are_named() -> None:
    names = set(re.findall(r'^        "(\w+)": params\.', RUNTIME, flags=re.M))
    assert names and all(f"`{name}`" in section("Sampling") for name in names)


def test_releases() -> None:
    span = f"{SUPPORTED[0]} to {SUPPORTED[-1]}"
    assert f"| SGLang | {span}, all {len(SUPPORTED)} releases: " in PAGE
    text = " ".join(README.replace("\n> ", " ").split())
    assert f"On every SGLang release that has DFLASH, {span} ({len(SUPPORTED)} wheels), a patched server" in text


def test_bytes_of_states_are_what_their_shapes_say() -> None:
    """Float32 states and bfloat16 convolutions; W is the budget and the root."""
    rows = [line.split("|")[1:-1] for line in section("Hybrid targets").splitlines() if " × " in line and "MiB" in line]
    assert len(rows) >= 5
    for row in rows:
        layers, heads, value, key, channels, kernel = map(
            int, re.findall(r"\d+", "|".join([row[0].split()[0], *row[1:4]]))
        )
        node = layers * (4 * heads * value * key + 2 * channels * (kernel - 1))
        shown = [float(cell.split()[0]) for cell in row[4:]]
        gib = node / (1 << 30)
        for found, expected in zip(shown, (gib * 1024, gib * 17, gib * 65, gib * 17 * 48), strict=True):
            assert abs(found - expected) <= 0.051, row


def test_every_family_on_the_page_is_known(ddtree_args: ModuleType) -> None:
    page = section("Hybrid targets")
    for words in ("gated delta net", "Mamba2", "KDA", "lightning", "short convolution", "Falcon-H1", "Granite"):
        assert words in page
    for name in ("gate", "kernel", "step count", "window layout", "links"):
        assert f"`{name}`" in page and f"{name}: " in RUNTIME, name
