"""Builds what a Dockerfile says in a folder, without Docker and without rights.

A stage's root is a folder. While a stage is built it lies at one place, the same for every stage, and the stages before
it are moved aside: what a later stage reads of an earlier one, it got by COPY. Absolute paths are relocated below the
root where they are *values* (ARG, ENV, WORKDIR, COPY); RUN may name them by variables only. Commands run as the user
who runs the tests, whatever USER says: tests look at the modes of files instead.

Only what the recipes use is understood. All else is refused: no file has an instruction that no test carries out.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dockerfile_parse import DockerfileParser
from dockerfile_parse.util import WordSplitter

from .machine import Machine

BASE_IMAGE = re.compile(r"python:3(\.\d+)?(-slim)?")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
OTHER_VARIABLE = re.compile(r"\$(?![{\w])|\$\{\w+[^\w}]")  # ${NAME:-default} and the like
ABSOLUTE = re.compile(r"(?:^|[\s\"'=:(])/\w")


class Refused(Exception):
    """The file says something that is not understood, or that Docker would not understand."""


class BuildFailed(Exception):
    """A RUN instruction ended with another exit code than 0."""

    def __init__(self, command: str, exit_code: int, output: str) -> None:
        super().__init__(f"exit code {exit_code}: {command}\n{output}")
        self.exit_code, self.output = exit_code, output


@dataclass
class Stage:
    """A stage while it is built, and what is left of it: the configuration of an image."""

    root: Path
    machine: Machine
    name: str = ""
    args: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    workdir: Path = Path("/")
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)
    ran: list[tuple[str, Stage]] = field(default_factory=list)  # each RUN, and the stage as it was then

    def variables(self) -> dict[str, str]:
        return {**self.args, **self.env}

    def words(self, text: str) -> list[str]:
        """The words of an instruction, its variables put in."""
        return list(WordSplitter(_declared(text, self.variables()), envs=self.variables()).split())

    def relocated(self, value: str) -> str:
        """A value that is a path, or a list of paths, below the root."""
        if not value.startswith("/"):
            return value
        return ":".join(self._relocated(part) for part in value.split(":"))

    def _relocated(self, path: str) -> str:
        here = path.startswith(f"{self.root}/") or path in self.machine.path.split(":")
        return path if here or not path.startswith("/") else f"{self.root}{path}"

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """What a container of this image prints for a command, found on its PATH."""
        environment = {**self.machine.environment(self.root / "root"), **self.variables(), **variables}
        program = shutil.which(command[0], path=environment["PATH"])
        assert program, f"{command[0]} is not in the image"
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.workdir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )

    def again(self, word: str, **variables: str) -> None:
        """The one RUN that has this word, once more, on what is there now."""
        ((command, then),) = [item for item in self.ran if word in item[0]]
        _execute(then, command, **variables)


Watch = Callable[[str, Stage], None]


@dataclass
class Build:
    """One build: ``scratch`` is an empty folder, ``args`` are those of the command line."""

    context: Path
    scratch: Path
    machine: Machine
    args: Mapping[str, str] = field(default_factory=dict)
    watch: Watch = lambda instruction, stage: None  # called after every instruction
    stages: list[Stage] = field(default_factory=list)
    globals: Stage = field(init=False)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.globals = Stage(self.scratch / "root", self.machine)

    def __call__(self, dockerfile: Path) -> Stage:
        """The last stage. Raises :class:`BuildFailed`, and :class:`Refused`."""
        parser = DockerfileParser(fileobj=io.BytesIO(dockerfile.read_bytes()), env_replace=False)
        for item in parser.structure:
            name, value = item["instruction"].upper(), item["value"]
            if name == "COMMENT":
                continue
            carry_out = getattr(self, f"_{name.lower()}", None)
            if carry_out is None:
                raise Refused(f"line {item['startline'] + 1}: {name} is not understood")
            carry_out(value)
            if self.stages:
                self.watch(f"{name} {value}", self.stages[-1])
        if unknown := set(self.args) - self.used:
            raise Refused(f"no ARG for {', '.join(sorted(unknown))}")
        return self.stages[-1]

    @property
    def stage(self) -> Stage:
        if not self.stages:
            raise Refused("an instruction before FROM")
        return self.stages[-1]

    def _from(self, value: str) -> None:
        image, *alias = self.globals.words(value)
        if not BASE_IMAGE.fullmatch(image) or (alias and (len(alias) != 2 or alias[0].upper() != "AS")):
            raise Refused(f"FROM {value}: only an image of Python, and a name")
        root = self.globals.root
        if self.stages:
            self.stages[-1].root = root.rename(self.scratch / f"stage-{len(self.stages)}")
        for folder in ("tmp", "root"):
            (root / folder).mkdir(parents=True)
        path = {"PATH": self.machine.path}
        self.stages.append(Stage(root, self.machine, alias[1] if alias else "", env=path, workdir=root))

    def _arg(self, value: str) -> None:
        stage = self.stages[-1] if self.stages else self.globals
        name, given, default = value.partition("=")
        self.used.add(name)
        if name in self.args:
            stage.args[name] = stage.relocated(self.args[name])
        elif given:
            (word,) = stage.words(default)
            stage.args[name] = stage.relocated(word)
        elif name in self.globals.args:
            stage.args[name] = self.globals.args[name]
        else:
            raise Refused(f"ARG {name} has no value: not by default, not before FROM, not on the command line")

    def _env(self, value: str) -> None:
        stage = self.stage
        pairs = [word.partition("=") for word in stage.words(value)]  # of one instruction, none sees the others
        if not all(sign for _, sign, _ in pairs):
            raise Refused(f"ENV {value}: NAME=VALUE only")
        stage.env.update({name: stage.relocated(word) for name, _, word in pairs})

    def _workdir(self, value: str) -> None:
        (word,) = self.stage.words(value)
        self.stage.workdir = self.stage.workdir / self.stage.relocated(word)
        self.stage.workdir.mkdir(parents=True, exist_ok=True)

    def _copy(self, value: str) -> None:
        words = self.stage.words(value)
        flags = {name: text for name, _, text in (word[2:].partition("=") for word in words if word.startswith("--"))}
        *sources, target = [word for word in words if not word.startswith("--")]
        if set(flags) - {"from", "chown"} or not sources:
            raise Refused(f"COPY {value}: only --from and --chown")
        place = self.stage.workdir / self.stage.relocated(target)
        for name in sources:
            origin = self._origin(flags.get("from"), name)
            if origin.is_dir():
                shutil.copytree(origin, place, symlinks=True, dirs_exist_ok=True)
            else:
                into = place / origin.name if target.endswith("/") or len(sources) > 1 else place
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin, into, follow_symlinks=False)

    def _origin(self, stage: str | None, name: str) -> Path:
        if stage is None:
            found = self.context / name.lstrip("/")
        else:
            (earlier,) = [item for item in self.stages[:-1] if item.name == stage]
            inside = Path(self.stage.relocated(name if name.startswith("/") else f"/{name}"))
            found = earlier.root / inside.relative_to(self.stage.root)
        if not found.exists():
            raise Refused(f"COPY {name}: it is not there")
        return found

    def _run(self, value: str) -> None:
        if value.startswith(("[", "--", "<<")):
            raise Refused(f"RUN {value}: only a command of the shell")
        if ABSOLUTE.search(value):
            raise Refused(f"RUN {value}: an absolute path; give it a variable")
        _declared(value, self.stage.variables())
        then = replace(self.stage, args=dict(self.stage.args), env=dict(self.stage.env))
        self.stage.ran.append((value, then))
        _execute(then, value)

    def _user(self, value: str) -> None:
        (self.stage.user,) = self.stage.words(value)
        if not re.fullmatch(r"\d+(:\d+)?", self.stage.user):
            raise Refused(f"USER {value}: numbers only, a name needs a line in passwd")

    def _entrypoint(self, value: str) -> None:
        self.stage.entrypoint = _words_of_json(value)

    def _cmd(self, value: str) -> None:
        self.stage.cmd = _words_of_json(value)


def _execute(stage: Stage, command: str, **variables: str) -> None:
    done = stage.run("/bin/sh", "-c", command, **variables)
    if done.returncode:
        raise BuildFailed(command, done.returncode, done.stdout)


def _declared(text: str, variables: Mapping[str, str]) -> str:
    """The text, if it uses variables in their plain form and no other than these. Docker would put in nothing."""
    if odd := OTHER_VARIABLE.search(text):
        raise Refused(f"{text}: {odd.group()} is not understood")
    if missing := {one or two for one, two in VARIABLE.findall(text)} - set(variables):
        raise Refused(f"{text}: {', '.join(sorted(missing))} is not declared in this stage")
    return text


def _words_of_json(value: str) -> list[str]:
    words = json.loads(value)
    assert isinstance(words, list) and all(isinstance(word, str) for word in words)
    return words


def files_below(folder: Path) -> Iterator[Path]:
    """Every file, links among them."""
    return (path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file())
