"""What GitHub's runner makes of the output of a step, as its ``ActionCommand`` and ``ActionCommandManager`` do it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_SECOND = re.compile(r"::([a-z-]+)(?: ([^:]*))?::(.*)", re.S)
_FIRST = re.compile(r"##\[([a-z-]+)(?: ([^\]]*))?\](.*)", re.S)


@dataclass(frozen=True)
class Command:
    name: str
    properties: dict[str, str]
    message: str


def commands(output: str) -> list[Command]:
    """The commands in what a step printed; those between ``stop-commands`` and its token are none."""
    found, token = [], ""
    for line in re.split("\r\n|\r|\n", output):
        if token:
            token = "" if line.strip() == f"::{token}::" else token
            continue
        match: Any = _SECOND.match(line.lstrip()) or _FIRST.search(line)
        if match is None:
            continue
        name, properties, message = match.groups()
        if name == "stop-commands":
            token = message
            continue
        pairs = (item.partition("=") for item in (properties or "").split(",") if item)
        found.append(Command(name, {key: _plain(value) for key, _, value in pairs}, _plain(message)))
    return found


def _plain(text: str) -> str:
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text
