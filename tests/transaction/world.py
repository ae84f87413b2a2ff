"""A tiny installed package, a tiny patchset for it, and the commands that work on them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ddtree_patcher import transaction
from ddtree_patcher.model import Diagnostic, Report, Tier
from ddtree_patcher.operations import applying, inspecting, planning, reverting
from ddtree_patcher.operations.session import Options, Session
from ddtree_patcher.records import row_for

MODULES = {
    "tiny/__init__.py": "",
    "tiny/alpha.py": "import os\n\nvalue = 'old'\n",
    "tiny/sub/__init__.py": "",
    "tiny/sub/beta.py": "class Args:\r\n    size: int = 1  # é\r\n",
    "tiny/other.py": "x = 1\n",
}
CHANGED = ("tiny/alpha.py", "tiny/sub/beta.py")
ADDED = "tiny/made/deep/extra.py"
RECORD = "tiny-1.0.dist-info/RECORD"

_PATCHSET = """\
from ddtree_patcher.codemods import AddField, AddFile, Anchor, ReplaceExpression
from ddtree_patcher.patchset import Patchset, Step, Variant

A = "tiny/alpha.py"
B = "tiny/sub/beta.py"
PATCHSET = Patchset(
    id="small",
    version="{version}",
    summary="a tiny patchset",
    distribution="tiny",
    package="tiny",
    supports=">=1",
    steps=(
        Step("value", "it is new", "", (Variant("one", edits=(ReplaceExpression(A, "", "'old'", "'{value}'"),)),)),
        Step(
            "field",
            "there is a field",
            "",
            (Variant("one", edits=(AddField(B, "Args", "budget: int = 16", after="size"),)),),
            requires=("value",),
        ),
        {third}
    ),
    {programs}
)
"""
_THIRD = """Step(
            "file", "there is a file", "", (Variant("one", edits=(AddFile("tiny/made/deep/extra.py", {content!r}),)),),
        ),"""

Footprint = Mapping[str, tuple[bytes, int, int]]  # path -> content, mode, time; folders with a slash at the end


@dataclass
class World:
    """``site`` holds the package and its dist-info, ``patchset`` the patchset."""

    base: Path
    options: dict[str, object] = field(default_factory=dict)

    @classmethod
    def installed(cls, base: Path) -> World:
        """A package that is installed, and a patchset for it."""
        made = cls(base)
        made.install()
        made.write_patchset()
        return made

    @property
    def site(self) -> Path:
        return self.base / "site"

    @property
    def patchset(self) -> Path:
        return self.base / "patchset"

    @property
    def state(self) -> Path:
        return self.site / ".ddtree-patch"

    def install(self) -> None:
        """Put the package there as pip would: with a RECORD, and every file a day old."""
        info = self.site / "tiny-1.0.dist-info"
        info.mkdir(parents=True)
        rows = []
        for path, text in MODULES.items():
            target = self.site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
            rows.append(row_for(path, text.encode()))
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text("".join(f"{row}\r\n" for row in [*rows, f"{RECORD},,"]), newline="")
        (self.site / "tiny/alpha.py").chmod(0o640)
        (self.site / "tiny/sub/beta.py").chmod(0o755)
        for number, target in enumerate(sorted(self.site.rglob("*"))):
            when = 1_600_000_000_123_456_789 + number * 1_000
            os.utime(target, ns=(when, when))

    def write_patchset(
        self,
        *,
        version: str = "1",
        value: str = "new",
        content: bytes | None = b"y = 2\n",
        programs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``programs`` are the code of those for ``smoke`` and ``e2e``."""
        self.patchset.mkdir(exist_ok=True)
        for tier, code in programs.items():
            (self.patchset / f"{tier}.py").write_text(code)
        third = _THIRD.format(content=content) if content is not None else ""
        named = " ".join(f'{tier}="{tier}.py",' for tier in programs)
        text = _PATCHSET.format(version=version, value=value, third=third, programs=named)
        (self.patchset / "__init__.py").write_text(text)

    def session(self) -> Session:
        return Session(Options(root=str(self.site), patchset=str(self.patchset), **self.options))  # type: ignore[arg-type]

    def apply(self, tier: Tier | None = None, **selection: object) -> Report:
        chosen = planning.Selection(**selection)  # type: ignore[arg-type]
        return applying.apply(self.session(), chosen, applying.Verification(tier))

    def revert(self, *, discard_edits: bool = False) -> Report:
        return reverting.revert(self.session(), discard_edits=discard_edits)

    def status(self) -> str:
        return inspecting.status(self.session(), check=False).outcome

    def doctor(self) -> Report:
        return inspecting.doctor(self.session())

    def recover(self) -> Diagnostic | None:
        """What every writing command does before anything else."""
        session = self.session()
        return transaction.recover(session.installation.folder, session.store)

    def read(self, path: str) -> bytes:
        return (self.site / path).read_bytes()

    def footprint(self) -> Footprint:
        """Everything below the site: bytes, modes and times of files, and which folders there are."""
        found = {}
        for folder, folders, files in os.walk(self.site):
            below = f"{folder}/".removeprefix(f"{self.site}/")
            for name in folders:
                found[f"{below}{name}/"] = (b"", stat.S_IMODE(os.lstat(f"{folder}/{name}").st_mode), 0)
            for name in files:
                path, status = f"{folder}/{name}", os.lstat(f"{folder}/{name}")
                # what is ours is rewritten with the same content when an application is undone
                when = 0 if below.startswith(".ddtree-patch/") else status.st_mtime_ns
                found[below + name] = (Path(path).read_bytes(), stat.S_IMODE(status.st_mode), when)
        return found

    def contents(self) -> Mapping[str, bytes]:
        """The bytes of every file but the tool's own."""
        return {
            name: data
            for name, (data, _, _) in self.footprint().items()
            if not name.startswith(".ddtree-patch") and not name.endswith("/")
        }


MakeWorld = Callable[[str], World]
