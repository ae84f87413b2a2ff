"""The comparison that the demo and these tests rest on sees every kind of difference."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import wheel_tree

CONTENT = {"pkg/__init__.py": b"", "pkg/tool.sh": b"#!/bin/sh\n", "pkg/sub/code.py": b"x = 1\n"}


@pytest.fixture
def small_wheel(tmp_path: Path) -> Path:
    path = tmp_path / "pkg-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in CONTENT.items():
            item = zipfile.ZipInfo(name)
            item.external_attr = (0o100755 if name.endswith(".sh") else 0o100664) << 16
            archive.writestr(item, data)
    return path


@pytest.fixture
def site(small_wheel: Path, tmp_path: Path) -> Path:
    wheel_tree.unpack(small_wheel, tmp_path / "site")
    return tmp_path / "site"


def test_an_unpacked_wheel_does_not_differ(small_wheel: Path, site: Path) -> None:
    assert list(wheel_tree.differences(small_wheel, site)) == []
    assert (site / "pkg/tool.sh").stat().st_mode & 0o777 == 0o755
    assert (site / "pkg/sub/code.py").stat().st_mode & 0o777 == 0o644


def _edit(site: Path) -> None:
    (site / "pkg/sub/code.py").write_bytes(b"x = 2\n")


def _remove(site: Path) -> None:
    (site / "pkg/sub/code.py").unlink()


def _link(site: Path) -> None:
    (site / "pkg/sub/code.py").rename(site.parent / "elsewhere.py")
    (site / "pkg/sub/code.py").symlink_to(site.parent / "elsewhere.py")


def _change_mode(site: Path) -> None:
    (site / "pkg/sub/code.py").chmod(0o600)


def _add_file(site: Path) -> None:
    (site / "pkg/sub/more.py").write_bytes(b"")


def _add_folder(site: Path) -> None:
    (site / ".state").mkdir()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_edit, "pkg/sub/code.py has other bytes"),
        (_remove, "pkg/sub/code.py is gone"),
        (_link, "pkg/sub/code.py is gone"),
        (_change_mode, "pkg/sub/code.py has mode 600, not 644"),
        (_add_file, "pkg/sub/more.py was left there"),
        (_add_folder, ".state was left there"),
    ],
)
def test_every_difference_is_said(change: Callable[[Path], None], said: str, small_wheel: Path, site: Path) -> None:
    change(site)
    assert said in list(wheel_tree.differences(small_wheel, site))


def test_what_an_installer_wrote_is_compared_with_its_own_bytes(small_wheel: Path, site: Path) -> None:
    (site / "INSTALLER").write_bytes(b"pip\n")
    assert list(wheel_tree.differences(small_wheel, site, {"INSTALLER": b"pip\n"})) == []
    assert list(wheel_tree.differences(small_wheel, site, {"INSTALLER": b"uv\n"})) == ["INSTALLER has other bytes"]
