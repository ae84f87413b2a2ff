"""Real engines: for every release one process that holds it imported, patched or not, shared by a worker's tests."""

from __future__ import annotations

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_server import EngineServer
from filelock import FileLock

KEPT = 3  # servers at once for each test process: one takes some 350 MB

Engines = Callable[..., EngineServer]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one release come one after the other, so that they find its server running."""
    folder = Path(__file__).parent
    ours = [index for index, item in enumerate(items) if folder in item.path.parents]
    ordered = sorted((items[index] for index in ours), key=_release)
    for index, item in zip(ours, ordered, strict=True):
        items[index] = item


def _release(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("version", "")) if callspec else ""


@pytest.fixture(scope="session")
def patched_tree(shared_tree: Callable[[str], Path], run_cli: Any) -> Callable[[str], Path]:
    """``patched_tree(version)``: the session's own tree of a release, patched by the command line; to be read only."""

    def get(version: str) -> Path:
        source = shared_tree(version)
        folder = source.with_name(f"{version}-patched")
        with FileLock(folder.with_suffix(".lock")):
            if not folder.is_dir():
                part = folder.with_suffix(".part")
                shutil.copytree(source, part, copy_function=os.link)  # what is patched is replaced, never written to
                run_cli("--root", part, "apply", "--verify", "static").expect(0)
                part.rename(folder)
        return folder

    return get


@pytest.fixture(scope="session")
def engines(
    patched_tree: Callable[[str], Path], shared_tree: Callable[[str], Path], sglang_python: str
) -> Iterator[Engines]:
    """``engines(version, patched=True)``: the server of that tree, started where it is not running."""
    running: OrderedDict[tuple[str, bool], EngineServer] = OrderedDict()

    def get(version: str, patched: bool = True) -> EngineServer:
        key = version, patched
        if key not in running:
            while len(running) >= KEPT:
                running.popitem(last=False)[1].close()
            tree = patched_tree if patched else shared_tree
            running[key] = EngineServer(sglang_python, tree(version))
        running.move_to_end(key)
        return running[key]

    yield get
    for server in running.values():
        server.close()


@pytest.fixture(scope="session")
def play(engines: Engines) -> Callable[..., dict[str, Any]]:
    """``play(version, algorithm, flags, script, ...)``: what ``inside/scenarios.play`` gives; equal calls run once."""
    results: dict[str, dict[str, Any]] = {}

    def run(version: str, algorithm: str, *flags: str, patched: bool = True, **arguments: Any) -> dict[str, Any]:
        environment = {"SGLANG_DDTREE_SELF_CHECK": "0", **arguments.pop("environment", {})}
        key = repr((version, algorithm, flags, patched, arguments, environment))
        if key not in results:
            results[key] = engines(version, patched).call(
                "scenarios.play", environment=environment, algorithm=algorithm, flags=list(flags), **arguments
            )
        return results[key]

    return run
