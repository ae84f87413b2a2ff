"""The cache of wheels: what counts as the wheel that is meant, where it is kept, and what pip's refusals become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree_patcher import resources, wheels
from ddtree_patcher.digest import sha256
from ddtree_patcher.errors import EnvironmentRefused
from ddtree_patcher.snapshot import bundled
from small_wheel import make_wheel

SILENT: Callable[[str], None] = lambda message: None  # noqa: E731


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of one project, in a folder, and the only one that pip knows."""
    folder = tmp_path / "index" / "pkg"
    make_wheel(folder, "1.0", {"pkg/__init__.py": ""}, name="pkg")
    make_wheel(folder, "1.1", {"pkg/__init__.py": ""}, name="pkg")
    links = [f'<a href="{path.name}">{path.name}</a>' for path in sorted(folder.glob("*.whl"))]
    (folder / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "index").as_uri())
    return folder


@pytest.fixture
def pin(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``pin(version=digest)``: what is known of ``pkg``, in place of what the tool knows."""

    def set_to(**known: str) -> None:
        monkeypatch.setattr(wheels, "pinned", lambda distribution: known)

    return set_to


def test_every_release_that_has_a_snapshot_has_a_digest() -> None:
    known = wheels.pinned("sglang")
    assert {item.version for item in bundled()} < set(known)
    assert all(len(digest) == 64 for digest in known.values())
    assert "snapshots were captured from" in (resources.folder("snapshots") / "wheels.txt").read_text("utf-8")
    assert wheels.pinned("other") == {}


class TestFetch:
    def test_a_wheel_is_downloaded_once(self, index: Path, tmp_path: Path) -> None:
        said: list[str] = []
        first = wheels.fetch("pkg", "1.0", tmp_path / "cache", said.append)
        again = wheels.fetch("pkg", "1.0", tmp_path / "cache", said.append)
        assert first == again == tmp_path / "cache" / "pkg-1.0-py3-none-any.whl"
        assert first.read_bytes() == (index / first.name).read_bytes()
        assert said == ["fetching pkg 1.0"]
        assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.name]  # no scratch folder is left

    def test_a_damaged_wheel_whose_digest_is_known_is_fetched_anew(
        self, index: Path, tmp_path: Path, pin: Callable[..., None]
    ) -> None:
        original = (index / "pkg-1.0-py3-none-any.whl").read_bytes()
        pin(**{"1.0": sha256(original)})
        cached = make_wheel(tmp_path / "cache", "1.0", {"pkg/other.py": ""}, name="pkg")
        assert cached.read_bytes() != original
        assert wheels.find("pkg", "1.0", tmp_path / "cache") is None
        assert wheels.fetch("pkg", "1.0", tmp_path / "cache", SILENT).read_bytes() == original

    def test_a_wheel_that_is_not_the_known_one_is_refused(
        self, index: Path, tmp_path: Path, pin: Callable[..., None]
    ) -> None:
        pin(**{"1.0": sha256(b"another")})
        with pytest.raises(EnvironmentRefused) as caught:
            wheels.fetch("pkg", "1.0", tmp_path / "cache", SILENT)
        assert "could not be fetched" in caught.value.summary
        assert sha256(b"another") in caught.value.detail
        assert list((tmp_path / "cache").iterdir()) == []

    def test_a_version_that_the_index_has_not(self, index: Path, tmp_path: Path) -> None:
        with pytest.raises(EnvironmentRefused) as caught:
            wheels.fetch("pkg", "2.0", tmp_path / "cache", SILENT)
        assert caught.value.summary.endswith("the index has no 2.0; the last it has is 1.1")
        assert "No matching distribution found for pkg==2.0" in caught.value.detail
        assert str(tmp_path / "cache") in caught.value.remedy

    def test_an_index_that_cannot_be_reached(
        self, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        monkeypatch.setenv("PIP_RETRIES", "0")
        with pytest.raises(EnvironmentRefused) as caught:
            wheels.fetch("pkg", "1.0", tmp_path / "cache", SILENT)
        assert caught.value.summary.endswith("no index offered it")
        assert "PIP_INDEX_URL" in caught.value.remedy

    def test_a_python_without_pip(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program = tmp_path / "python"
        program.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setattr(wheels.sys, "executable", str(program))
        with pytest.raises(EnvironmentRefused, match="No module named pip"):
            wheels.fetch("pkg", "1.0", tmp_path / "cache", SILENT)


class TestFind:
    @pytest.mark.parametrize("name", ["pkg-1.0.0-py3-none-any.whl", "Pkg-1.0-1-cp311-cp311-manylinux_2_34_x86_64.whl"])
    def test_other_spellings_of_the_same(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(b"")
        assert wheels.find("pkg", "1.0", tmp_path) == tmp_path / name

    @pytest.mark.parametrize("name", ["pkg-1.0.post1-py3-none-any.whl", "pkg2-1.0-py3-none-any.whl", "pkg-1.0.whl"])
    def test_others(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(b"")
        assert wheels.find("pkg", "1.0", tmp_path) is None

    def test_no_folder(self, tmp_path: Path) -> None:
        assert wheels.find("pkg", "1.0", tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("given", "place"),
    [("/var/cache/me", "/var/cache/me"), ("", "/home/me/.cache"), ("relative", "/home/me/.cache")],
)
def test_where_wheels_are_kept(given: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG: https://specifications.freedesktop.org/basedir-spec: a relative path is to be ignored."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert wheels.cache_folder() == Path(place) / "ddtree-patch" / "wheels"
