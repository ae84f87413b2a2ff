"""Every place of every release where DFLASH is asked for by name has a verdict, and the steps keep to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from ddtree_patcher import patchset as patchsets
from ddtree_patcher.digest import Read, read_from
from ddtree_patcher.patchset import Patchset
from ddtree_patcher.planner import draft
from ddtree_patcher.sentinels import Ruling, Sentinels, Site, Verdict, alarms, foreign, survey
from ddtree_patcher.tree import Tree
from sglang_releases import SUPPORTED, WITH_DFLASH

pytestmark = pytest.mark.wheels

SPEC_UTILS = "sglang/srt/speculative/spec_utils.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
SPEC_INFO = "sglang/srt/speculative/spec_info.py"
NEW_FILE = "sglang/srt/speculative/brand_new.py"

Sites = Callable[[str], list[Site]]


@cache
def ddtree() -> Patchset:
    return patchsets.load("ddtree").patchset


def watched() -> Sentinels:
    sentinels = ddtree().sentinels
    assert sentinels is not None
    return sentinels


def verdict_on(site: Site) -> Verdict:
    return next(item for item in watched().verdicts if item.covers(site))


@pytest.fixture(scope="module")
def sites_of(shared_tree: Callable[[str], Path]) -> Sites:
    """``sites_of(version)``: every place in the whole package."""

    @cache
    def get(version: str) -> list[Site]:
        folder = shared_tree(version)
        paths = [path.relative_to(folder).as_posix() for path in folder.glob("sglang/**/*.py")]
        return survey(watched(), read_from(folder), paths)

    return get


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_every_place_has_a_verdict(version: str, sites_of: Sites) -> None:
    found = sites_of(version)
    assert alarms(watched(), found) == []
    assert foreign(watched(), found) == []


def test_every_verdict_is_on_a_place_that_some_release_has(sites_of: Sites) -> None:
    """One that is on nothing would hide that its place has another shape by now, or be a slip of the pen."""
    found = [site for version in WITH_DFLASH for site in sites_of(version)]
    assert [item for item in watched().verdicts if not any(item.covers(site) for site in found)] == []


def test_no_two_verdicts_are_on_one_place(sites_of: Sites) -> None:
    for site in {site for version in WITH_DFLASH for site in sites_of(version)}:
        assert len([item for item in watched().verdicts if item.covers(site)]) == 1, site


@pytest.mark.parametrize("version", WITH_DFLASH)
def test_no_verdict_stands_for_more_places_than_a_release_has(version: str, sites_of: Sites) -> None:
    """Else a new place like an old one would pass unseen."""
    found = sites_of(version)
    for verdict in {verdict_on(site) for site in found}:
        assert len([site for site in found if verdict.covers(site)]) == verdict.places


# --- a new place ------------------------------------------------------------------------------------------------

PLANTED = {
    "a literal in a known function": (SPEC_UTILS, "spec_need_hidden_states", 'server_args.mode == "DFLASH"'),
    "a list in a known file": (SCHEDULER, "Scheduler.__init__", "name in ['EAGLE', 'DFLASH']"),
    "an enum member": (SCHEDULER, "Scheduler.__init__", "self.spec_algorithm == SpeculativeAlgorithm.DFLASH"),
    "a tuple of members": (SPEC_INFO, "SpeculativeAlgorithm.is_dflash", "self in (Kind.EAGLE, Kind.DFLASH)"),
    "a member by its name": (SPEC_INFO, "SpeculativeAlgorithm.is_dflash", "name == SpeculativeAlgorithm.DFLASH.name"),
    "the type of a verify input": (
        SCHEDULER,
        "Scheduler.__init__",
        "spec.spec_input_type is SpecInputType.DFLASH_VERIFY",
    ),
}


def planted(read: Read, path: str, scope: str, use: str) -> tuple[bytes, int]:
    """A file with one more use, as the first statement of a function; and its line."""
    source = Tree(read).source(path)
    assert source is not None
    first = source.definitions[scope][-1].body[0]
    margin = " " * first.col_offset
    lines = source.data.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{margin}planted = {use}\n".encode())
    return b"".join(lines), first.lineno


@pytest.mark.parametrize("version", ["0.5.14", "0.5.18", "0.5.23"])
@pytest.mark.parametrize("case", PLANTED)
def test_a_new_use_in_a_file_that_is_known_is_an_alarm(
    case: str, version: str, shared_tree: Callable[[str], Path]
) -> None:
    path, scope, use = PLANTED[case]
    data, line = planted(read_from(shared_tree(version)), path, scope, use)
    (alarm,) = alarms(watched(), survey(watched(), lambda _: data, [path]))
    assert (alarm.site.path, alarm.site.line, alarm.site.scope) == (path, line, scope)


@pytest.mark.parametrize("version", ["0.5.11", "0.5.13.post1", "0.5.17", "0.5.23"])
def test_a_known_use_that_is_there_once_more_is_an_alarm(
    version: str, sites_of: Sites, shared_tree: Callable[[str], Path]
) -> None:
    read = read_from(shared_tree(version))
    expressions = [site for site in sites_of(version) if site.scope and " = " not in site.use]
    assert len(expressions) > 3
    for site in expressions:
        data, line = planted(read, site.path, site.scope, site.use)
        (alarm,) = alarms(watched(), survey(watched(), lambda _, data=data: data, [site.path]))
        assert f" {line}" in alarm.reason and "there are" in alarm.reason


def test_a_use_in_a_new_file_is_an_alarm() -> None:
    data = b'def choose(args):\n    if args.speculative_algorithm == "DFLASH":\n        return 1\n'
    (alarm,) = alarms(watched(), survey(watched(), lambda _: data, [NEW_FILE]))
    assert (alarm.site.path, alarm.site.line, alarm.site.scope) == (NEW_FILE, 2, "choose")


# --- the steps keep to the verdicts -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_place_is_changed_where_its_verdict_says_so_and_nowhere_else(
    version: str, sites_of: Sites, shared_tree: Callable[[str], Path]
) -> None:
    pristine = sites_of(version)
    made = draft(ddtree(), Tree(read_from(shared_tree(version))))
    assert not made.conflicts
    paths = {site.path for site in pristine}

    def patched(path: str) -> bytes:
        data = made.tree.get(path)
        assert data is not None
        return data

    after = survey(watched(), patched, paths)
    for site in pristine:
        kept = any((item.path, item.scope, item.use) == (site.path, site.scope, site.use) for item in after)
        serves = any(item.name == "DDTREE" and (item.path, item.scope) == (site.path, site.scope) for item in after)
        extended = verdict_on(site).ruling is Ruling.EXTENDED
        assert (kept, serves or not extended) == (not extended, True), site
