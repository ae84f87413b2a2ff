"""Watched names: where they are used, and which uses have no verdict."""

from __future__ import annotations

import pytest

from ddtree_patcher.errors import PatchsetError
from ddtree_patcher.model import ExitCode
from ddtree_patcher.sentinels import Ruling, Sentinels, Site, Verdict, alarms, foreign, survey

F = "pkg/f.py"
WATCH = Sentinels(strings=("CHAIN",), attributes=("CHAIN",), own=("TREE",), elsewhere=("pkg/test/",))


def sites(*files: str, sentinels: Sentinels = WATCH) -> list[Site]:
    """The sites in files ``pkg/f.py``, ``pkg/g.py`` …"""
    texts = {f"pkg/{letter}.py": text.encode() for letter, text in zip("fghi", files, strict=False)}
    return survey(sentinels, texts.__getitem__, texts)


def uses(text: str) -> list[tuple[int, str, str]]:
    return [(site.line, site.scope, site.use) for site in sites(text)]


class TestUse:
    @pytest.mark.parametrize(
        ("code", "use"),
        [
            ('if a == "CHAIN" and b: ...', "a == 'CHAIN'"),
            ("if a == 'CHAIN' and b: ...", "a == 'CHAIN'"),
            ('x = a.b not in ("OTHER", "CHAIN") or c', "a.b not in ('OTHER', 'CHAIN')"),
            ("x = kind == Kind.CHAIN", "kind == Kind.CHAIN"),
            ("x = kind in {Kind.A, Kind.CHAIN}", "kind in {Kind.A, Kind.CHAIN}"),
            ("x = name == Kind.CHAIN.name", "name == Kind.CHAIN.name"),
            ("x = (kind is Kind\n     .CHAIN)", "kind is Kind.CHAIN"),
            ('NAMES = ("OTHER", "CHAIN")', "NAMES = ('OTHER', 'CHAIN')"),
            ('NAMES = frozenset({"CHAIN"})', "frozenset({'CHAIN'})"),
            ('run(a, kind="CHAIN")', "run(a, kind='CHAIN')"),
            ('x = getattr(Kind, "CHAIN") == y', "getattr(Kind, 'CHAIN')"),
            ('x = Kind["CHAIN"]', "x = Kind['CHAIN']"),
            ('x = "CHAIN" if a else "OTHER"', "x = 'CHAIN' if a else 'OTHER'"),
            ('for name in ("OTHER", "CHAIN"):\n    run(name)', "for name in ('OTHER', 'CHAIN'): ..."),
            ('while "CHAIN":\n    run()\nelse:\n    stop()', "while 'CHAIN': ..."),
            ('match a:\n    case "CHAIN" | "OTHER":\n        run()', "'CHAIN'"),
            ("match a:\n    case Kind.CHAIN:\n        run()", "Kind.CHAIN"),
            ("x = f\"{a == 'CHAIN'}\"", "a == 'CHAIN'"),
            ('x = f"""one\n{a == \'CHAIN\'}\n"""', "a == 'CHAIN'"),
        ],
    )
    def test_is_the_smallest_comparison_call_or_statement_on_one_line(self, code: str, use: str) -> None:
        assert [found for _, _, found in uses(code + "\n")] == [use]

    def test_of_a_default_and_of_a_decorator(self) -> None:
        assert uses('@needs("CHAIN")\ndef f(kind="CHAIN"):\n    pass\n') == [
            (1, "f", "needs('CHAIN')"),
            (2, "f", "def f(kind='CHAIN'): ..."),
        ]

    @pytest.mark.parametrize(
        "code",
        [
            '"CHAIN"',  # a docstring
            '"""Only "CHAIN" is meant."""',
            'log("no CHAIN here")',
            '# a == "CHAIN"',
            "CHAIN = 1",
            "x = CHAIN",
            "x = Kind.CHAINED",
            'x = "CHAINED"',
            "import chain",
        ],
    )
    def test_prose_and_other_names_are_no_uses(self, code: str) -> None:
        assert uses(code + "\n") == []

    def test_lies_in_the_innermost_definition(self) -> None:
        text = (
            'if a == "CHAIN":\n    pass\n\n\nclass C:\n    kind = "CHAIN"\n\n    def m(self):\n'
            '        def inner():\n            return "CHAIN"\n        return lambda: Kind.CHAIN\n'
        )
        assert [(line, scope) for line, scope, _ in uses(text)] == [(1, ""), (6, "C"), (10, "C.m.inner"), (11, "C.m")]

    def test_windows_lines_and_a_byte_order_mark_count_as_lines_do(self) -> None:
        assert [line for line, _, _ in uses('\ufeff# one\r\n\r\nx = a == "CHAIN"\r\n')] == [3]


class TestFiles:
    def test_of_tests_and_of_other_kinds_are_not_looked_at(self) -> None:
        files = {"pkg/test/f.py": b'x = "CHAIN"\n', "pkg/f.json": b'"CHAIN"', "pkg/z.py": b'x = "CHAIN"\n'}
        assert [site.path for site in survey(WATCH, files.__getitem__, files)] == ["pkg/z.py"]

    def test_without_a_name_are_not_parsed(self) -> None:
        assert sites("this is not Python, and speaks of CHAIN\n") == []

    def test_that_cannot_be_parsed_are_alarms(self) -> None:
        (site,) = found = sites('x = 1\nif a == "CHAIN"\n')
        (alarm,) = alarms(WATCH, found)
        assert (site.line, site.name, site.use) == (2, "", "")
        assert "cannot parse" in alarm.reason


def judged(*verdicts: Verdict) -> Sentinels:
    return Sentinels(WATCH.strings, WATCH.attributes, verdicts, WATCH.own, WATCH.elsewhere)


def verdict(use: str, scope: str = "run", path: str = F, places: int = 1) -> Verdict:
    return Verdict(path, scope, use, Ruling.LEFT, "because", places)


RUN = 'def run(a):\n    if a.kind == "CHAIN":\n        pass\n'


class TestVerdict:
    @pytest.mark.parametrize(
        "use", ['a.kind == "CHAIN"', "a.kind == 'CHAIN'", '(...).kind == "CHAIN"', "a.kind == ..."]
    )
    def test_covers_its_place_however_it_is_laid_out(self, use: str) -> None:
        assert alarms(judged(verdict(use)), sites(RUN)) == []
        assert (
            alarms(judged(verdict(use)), sites("\n\n" + RUN.replace('a.kind == "CHAIN"', "(a.kind\n  == 'CHAIN')")))
            == []
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            verdict('a.kind != "CHAIN"'),
            verdict('a.kind in ("CHAIN", "OTHER")'),
            verdict('a.kind == "CHAIN"', scope=""),
            verdict('a.kind == "CHAIN"', scope="C.run"),
            verdict('a.kind == "CHAIN"', path="pkg/g.py"),
        ],
        ids=["another comparison", "another tuple", "the module", "another definition", "another file"],
    )
    def test_on_another_place_covers_nothing(self, wrong: Verdict) -> None:
        (alarm,) = alarms(judged(wrong), sites(RUN))
        assert (alarm.site.path, alarm.site.line, alarm.site.scope) == (F, 2, "run")

    def test_nearby_is_shown(self) -> None:
        (alarm,) = alarms(judged(verdict('a.kind in ("CHAIN", "OTHER")')), sites(RUN))
        assert alarm.reason == 'Verdicts in the same definition: `a.kind in ("CHAIN", "OTHER")` (left).'

    def test_stands_for_one_place_and_a_second_one_like_it_is_an_alarm(self) -> None:
        twice = sites(RUN + '    if a.kind == "CHAIN":\n        more()\n')
        (alarm,) = alarms(judged(verdict('a.kind == "CHAIN"')), twice)
        assert alarm.site.line == 4
        assert "stands for 1, and there are 2: lines 2, 4" in alarm.reason
        assert alarms(judged(verdict('a.kind == "CHAIN"', places=2)), twice) == []

    def test_of_which_the_place_is_gone_is_no_alarm(self) -> None:
        assert alarms(judged(verdict('a.kind == "CHAIN"')), sites("x = 1\n")) == []

    @pytest.mark.parametrize("use", ["a ==", "", "a = 1\nb = 2"])
    def test_on_what_is_no_statement_is_a_fault_of_the_patchset(self, use: str) -> None:
        with pytest.raises(PatchsetError, match=F) as refused:
            judged(verdict(use))
        assert refused.value.exit_code is ExitCode.USAGE and refused.value.remedy


class TestOwnNames:
    def test_in_pristine_code_are_foreign(self) -> None:
        found = sites('x = kind == Kind.TREE\ny = "TREE"\n')
        assert [site.line for site in foreign(WATCH, found)] == [1, 2]
        assert alarms(WATCH, found) == []

    def test_beside_the_watched_one_are_no_riddle(self) -> None:
        found = sites('x = kind in ("CHAIN", "TREE")\n')
        assert [site.name for site in foreign(WATCH, found)] == ["TREE"]
        assert alarms(WATCH, found) == []

    def test_are_not_looked_for_unless_named(self) -> None:
        assert sites('x = "TREE"\n', sentinels=Sentinels(strings=("CHAIN",))) == []
