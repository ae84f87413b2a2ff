"""What the tests of the documents read out of Markdown: sections, blocks, commands and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
COMMANDS = {"", "sh", "bash", "shell", "console"}  # the languages of blocks that a reader would type

_FENCE = re.compile(r"^(```+)([\w-]*)[^\n]*\n(.*?)^\1\s*$", re.S | re.M)
_HEADING = re.compile(r"^#+ +(.*)$", re.M)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    document: str  # relative to the repository
    section: str  # the anchor of the heading that it stands under
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.document}#{self.section}"


@dataclass(frozen=True)
class Command:
    """One line to type, and what the document shows of its output (``None``: nothing is shown)."""

    line: str
    output: str | None = None


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def slug(heading: str) -> str:
    """The fragment that Markdown viewers give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_blocks(text: str) -> str:
    """The prose: blocks are replaced by nothing, as a comment in one is no heading."""
    return _FENCE.sub("", text)


def anchors(document: Path) -> set[str]:
    """Every fragment that leads somewhere; a heading that is there twice gets a number."""
    found: set[str] = set()
    for heading in _HEADING.findall(without_blocks(document.read_text("utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name, number = slug(plain), 0
        while (fragment := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(fragment)
    return found


def blocks(document: Path) -> Iterator[Block]:
    text, position, section = document.read_text("utf-8"), 0, ""
    for fence in _FENCE.finditer(text):
        for heading in _HEADING.findall(text[position : fence.start()]):
            section = slug(heading)
        position = fence.end()
        yield Block(name_of(document), section, fence[2], fence[3])


def commands(block: Block) -> list[Command]:
    """The lines to type: all, or those behind ``$`` with what they print, where the block has such lines."""
    joined = block.text.replace("\\\n", " ")
    if "$ " not in {line[:2] for line in joined.splitlines()}:
        lines = (re.split(r"(?:^|\s)# ", f"{line} ")[0].strip() for line in joined.splitlines())
        return [Command(line) for line in lines if line and not line.startswith("#")]
    shown = re.split(r"^\$ ", joined, flags=re.M)[1:]
    return [Command(line.strip(), output) for line, _, output in (item.partition("\n") for item in shown)]


def spans(document: Path) -> Iterator[str]:
    """The code in the prose: `` `like this` ``, on one line or broken over two."""
    for found in re.findall(r"(?<!`)`([^`]+)`(?!`)", without_blocks(document.read_text("utf-8"))):
        yield " ".join(found.split())


def links(document: Path) -> Iterator[str]:
    prose = re.sub(r"`[^`\n]*`", "", without_blocks(document.read_text("utf-8")))
    yield from re.findall(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)", prose)
    yield from re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, flags=re.M)
    yield from re.findall(r"""<(?:a|img|source)\b[^>]*?(?:href|src|srcset)=["']([^"']+)["']""", prose)
