"""Probes: what becomes of a program's answer, and of a program that gives none."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from ddtree_patcher.model import CheckOutcome, CheckResult, Tier
from ddtree_patcher.verification.probes_runner import BOOTSTRAP, IMPORTS, PROBES, run_probe


class Bench:
    """A tree that looks like SGLang's, and programs to run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "site"
        self.said: list[str] = []
        self.write("sglang/__init__.py", "")
        self.write("sglang/good.py", "VALUE = 'from the tree'\n")

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")

    def run(
        self,
        program: str,
        *,
        args: Sequence[str] = (),
        time_limit: float = 30.0,
        beside: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[CheckResult, ...]:
        """``beside`` are more files in the program's folder."""
        folder = self.root / "programs"
        for name, text in {"program.py": program, **beside}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return run_probe(
            sys.executable, self.folder, folder / "program.py", args, Tier.SMOKE, time_limit, self.said.append
        )

    def run_one(self, body: str, **options: float) -> CheckResult:
        """A program whose only check has this body."""
        program = "def checks():\n    yield 'one', one\ndef one():\n" + textwrap.indent(textwrap.dedent(body), "    ")
        (result,) = self.run(program, **options)  # type: ignore[arg-type]
        return result

    def imports(self, *modules: str, args: Sequence[str] = ()) -> dict[str, CheckResult]:
        results = run_probe(sys.executable, self.folder, IMPORTS, [*args, *modules], Tier.IMPORT, 60.0)
        return {result.id: result for result in results}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


SPAWNING = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from . import parts
    def checks():
        yield "spawned", spawned
    def where(name):
        import os, sgl_kernel, sglang.good
        return [name, os.getpid(), sglang.good.__file__, sgl_kernel.__file__]
    def spawned():
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
            theirs = processes.submit(FUNCTION, "x").result()
        ours = where("x")
        assert theirs[1] != ours[1], "no other process"
        assert theirs[:1] + theirs[2:] == ours[:1] + ours[2:], f"{theirs} is not {ours}"
        return "the same " + theirs[2]
"""


class TestASpawnedProcess:
    """A fresh interpreter, as SGLang starts its schedulers: nothing is inherited but what is handed on."""

    @pytest.mark.parametrize("function", ["where", "parts.where"])
    def test_it_has_the_same_path_and_stand_ins(self, bench: Bench, function: str) -> None:
        parts = "def where(name):\n    from . import program\n    return program.where(name)\n"
        (result,) = bench.run(SPAWNING.replace("FUNCTION", function), beside={"parts.py": parts})
        assert result.outcome is CheckOutcome.PASSED, result.detail
        assert str(bench.folder) in result.detail
        assert list(bench.folder.rglob("__pycache__")) == []

    def test_what_it_prints_does_not_corrupt_the_answer(self, bench: Bench) -> None:
        program = SPAWNING.replace("FUNCTION", "where").replace("import os, sgl", "print('noise'); import os, sgl")
        (result,) = bench.run(program, beside={"parts.py": ""})
        assert result.outcome is CheckOutcome.PASSED, result.detail

    def test_one_that_dies_fails_the_check(self, bench: Bench) -> None:
        program = SPAWNING.replace("FUNCTION", "where").replace("import os, sgl", "import os; os._exit(3); import sgl")
        (result,) = bench.run(program, beside={"parts.py": ""})
        assert result.outcome is CheckOutcome.FAILED
        assert "BrokenProcessPool" in result.detail


class TestAnAnswer:
    def test_each_check_is_one_result_of_the_tier(self, bench: Bench) -> None:
        results = bench.run(
            """
            import sys
            def checks():
                yield "first", lambda: "fine " + " ".join(sys.argv[1:])
                yield "second", broken
            def broken():
                raise AssertionError("2 is not 3")
            """,
            args=["a", "--b"],
        )
        assert [(result.tier, result.id, result.outcome) for result in results] == [
            (Tier.SMOKE, "first", CheckOutcome.PASSED),
            (Tier.SMOKE, "second", CheckOutcome.FAILED),
        ]
        assert results[0].detail.startswith("fine a --b")
        assert results[1].detail.startswith("AssertionError: 2 is not 3")

    def test_the_folder_comes_first_on_the_path(self, bench: Bench) -> None:
        result = bench.run_one("import sys, sglang.good; return sglang.good.VALUE + ' ' + sys.path[0]")
        assert result.detail.startswith(f"from the tree {bench.folder}")

    def test_stand_ins_are_named_by_every_check_that_ran_with_them(self, bench: Bench) -> None:
        result = bench.run_one("import sgl_kernel.kvcacheio; return sgl_kernel.kvcacheio.__file__")
        assert str(PROBES / "stand_ins") in result.detail
        assert "[stand-ins: sgl_kernel" in result.detail

    def test_a_module_that_can_be_imported_is_not_stood_in_for(self, bench: Bench) -> None:
        bench.write("sgl_kernel/__init__.py", "REAL = True\n")
        result = bench.run_one("import sgl_kernel; return str(sgl_kernel.REAL)")
        assert result.detail.startswith("True")
        assert "sgl_kernel" not in result.detail

    def test_a_module_that_is_there_and_cannot_be_imported_is_stood_in_for(self, bench: Bench) -> None:
        bench.write("sgl_kernel/__init__.py", "raise OSError('libcuda.so.1: cannot open shared object file')\n")
        result = bench.run_one("import sgl_kernel; return sgl_kernel.__file__")
        assert str(PROBES / "stand_ins" / "sgl_kernel") in result.detail

    def test_a_stand_in_kernel_refuses_to_run(self, bench: Bench) -> None:
        result = bench.run_one("from sgl_kernel import gemm; gemm(1)")
        assert result.outcome is CheckOutcome.FAILED
        assert "sgl_kernel.gemm was called" in result.detail

    def test_what_libraries_print_does_not_corrupt_it(self, bench: Bench) -> None:
        result = bench.run_one(
            """
            import os, sys
            print("noise, no newline at the end", end="", flush=True)
            sys.__stdout__.write("{}")
            os.write(1, b"{\\n")
            os.system("echo from a child")
            return "quiet"
            """
        )
        assert (result.outcome, result.detail[:5]) == (CheckOutcome.PASSED, "quiet")

    def test_an_exit_handler_cannot_change_it(self, bench: Bench) -> None:
        result = bench.run_one("import atexit, os; atexit.register(os._exit, 3); return 'answered'")
        assert result.outcome is CheckOutcome.PASSED

    def test_sys_exit_fails_its_own_check_alone(self, bench: Bench) -> None:
        first, second = bench.run(
            """
            import sys
            def checks():
                yield "exits", lambda: sys.exit(2)
                yield "goes-on", lambda: "still here"
            """
        )
        assert (first.outcome, first.detail[:13]) == (CheckOutcome.FAILED, "SystemExit: 2")
        assert second.outcome is CheckOutcome.PASSED

    def test_no_bytecode_is_written_into_the_tree(self, bench: Bench) -> None:
        bench.run_one("import sglang.good; return ''")
        bench.imports("sglang.good")
        assert [path.name for path in bench.folder.rglob("*") if "pyc" in path.name] == []

    def test_it_runs_in_an_empty_folder_that_is_gone_afterwards(self, bench: Bench) -> None:
        result = bench.run_one(
            "import os, tempfile; assert not os.listdir(); open('left', 'w').close(); return tempfile.gettempdir()"
        )
        assert not Path(result.detail.partition(" [")[0]).exists()

    def test_there_is_nothing_on_standard_input(self, bench: Bench) -> None:
        assert bench.run_one("import sys; return repr(sys.stdin.read())").detail.startswith("''")


class TestKeptBytecode:
    """Each process of a verification would compile the same two thousand files again."""

    PROGRAM = """
        def checks():
            yield "one", one
        def one():
            from sglang.good import VALUE, function
            return f"{VALUE} {function.__code__.co_filename}"
    """

    def run(self, bench: Bench, bytecode: Path, folder: Path | None = None) -> str:
        program = bench.root / "program.py"
        program.write_text(textwrap.dedent(self.PROGRAM), encoding="utf-8")
        (result,) = run_probe(
            sys.executable, folder or bench.folder, program, (), Tier.SMOKE, 30.0, bytecode=str(bytecode)
        )
        assert result.outcome is CheckOutcome.PASSED
        return result.detail.partition(" [")[0]

    @pytest.fixture
    def kept(self, tmp_path: Path, bench: Bench) -> Path:
        bench.write("sglang/good.py", "VALUE = 'tree'\ndef function(): ...\n")
        (tmp_path / "kept").mkdir()
        return tmp_path / "kept"

    def test_is_found_by_the_source_and_bears_the_path_of_whoever_imports(self, bench: Bench, kept: Path) -> None:
        assert self.run(bench, kept) == f"tree {bench.folder / 'sglang/good.py'}"
        digest = hashlib.sha256((bench.folder / "sglang/good.py").read_bytes()).hexdigest()
        (code,) = kept.glob(f"*{digest}")
        code.write_bytes(marshal.dumps(compile("VALUE = 'kept'\ndef function(): ...\n", "elsewhere.py", "exec")))
        copy = bench.folder.with_name("copy")
        shutil.copytree(bench.folder, copy)
        assert self.run(bench, kept, copy) == f"kept {copy / 'sglang/good.py'}"
        bench.write("sglang/good.py", "VALUE = 'other'\ndef function(): ...\n")
        assert self.run(bench, kept) == f"other {bench.folder / 'sglang/good.py'}"

    @pytest.mark.parametrize("content", [b"", b"\x00 no code", marshal.dumps("text")])
    def test_that_cannot_be_used_is_made_anew(self, content: bytes, bench: Bench, kept: Path) -> None:
        self.run(bench, kept)
        for file in kept.iterdir():
            file.write_bytes(content)
        assert self.run(bench, kept).startswith("tree ")

    def test_that_cannot_be_written_changes_nothing(self, bench: Bench, kept: Path) -> None:
        assert self.run(bench, kept / "missing").startswith("tree ")

    def test_beside_a_source_comes_first(self, bench: Bench, kept: Path) -> None:
        """What a server would load is what is proved, even where its bytecode is not that of its source."""
        self.run(bench, kept)
        source = bench.folder / "sglang/good.py"
        stale = bench.folder / "stale.py"
        stale.write_text("VALUE = 'stale'\ndef function(): ...\n", encoding="utf-8")
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        cached = importlib.util.cache_from_source(str(source))
        py_compile.compile(str(stale), cached, str(source), doraise=True, invalidation_mode=mode)
        assert self.run(bench, kept) == f"stale {source}"


class TestFilesBesideTheProgram:
    def test_are_imported_relatively_and_their_folder_is_not_on_the_path(self, bench: Bench) -> None:
        (result,) = bench.run(
            """
            import sys
            from . import models
            from .parts.deep import DEEP
            def checks():
                yield "one", lambda: " ".join([models.TEXT, DEEP, str(models.__file__ in sys.path), __package__])
            """,
            beside={
                "__init__.py": "raise SystemExit('the tool itself need not be there')",
                "models.py": "from .parts import deep\nTEXT = 'models'\n",
                "parts/__init__.py": "",
                "parts/deep.py": "DEEP = 'deep'\n",
            },
        )
        assert result.detail.startswith("models deep False ddtree_patch_probe"), result.detail

    def test_none_hides_a_module_of_its_name(self, bench: Bench) -> None:
        (result,) = bench.run(
            "def checks():\n    import queue\n    yield 'one', lambda: queue.__file__\n",
            beside={"queue.py": "raise RuntimeError('mine')\n"},
        )
        assert result.outcome is CheckOutcome.PASSED


class TestRows:
    def test_are_what_a_generator_yields_in_order(self, bench: Bench) -> None:
        result = bench.run_one(
            """
            yield {"algorithm": "DFLASH", "budget": None, "equal": True, "length": 2.5, "steps": 3}
            yield "text is no row"
            yield {"algorithm": "\\x1b[31mDDTREE\\x1b[0m\\x07", "budget": 16, "equal": False, "length": float("nan")}
            return "two runs"
            """
        )
        assert result.detail.startswith("two runs")
        assert [dict(row) for row in result.rows] == [
            {"algorithm": "DFLASH", "budget": None, "equal": True, "length": 2.5, "steps": 3},
            {"algorithm": "DDTREE ", "budget": 16, "equal": False, "length": None},
        ]
        assert list(result.rows[0]) == ["algorithm", "budget", "equal", "length", "steps"]

    def test_are_kept_where_the_check_fails_later(self, bench: Bench) -> None:
        result = bench.run_one("yield {'equal': True}\nyield {'equal': False}\nraise AssertionError('they differ')")
        assert (result.outcome, "they differ" in result.detail) == (CheckOutcome.FAILED, True)
        assert result.rows == ({"equal": True}, {"equal": False})

    @pytest.mark.parametrize("value", ["[1]", "object()", "b'x'", "{}"])
    def test_are_flat(self, bench: Bench, value: str) -> None:
        result = bench.run_one(f"try:\n    yield {{'a': {value}}}\nfinally:\n    print('closed')")
        assert (result.outcome, "'a' is" in result.detail) == (CheckOutcome.FAILED, True)

    def test_a_generator_that_returns_nothing_has_no_detail(self, bench: Bench) -> None:
        result = bench.run_one("yield 'text'")
        assert (result.outcome, result.detail.partition("[")[0].strip()) == (CheckOutcome.PASSED, "")


class TestProgress:
    PROGRAM = """
        import os, time
        def checks():
            yield "first", lambda: ""
            yield "second", broken
            yield "third", slow
        def broken():
            raise AssertionError("no")
        def slow():
            yield "one\\ntwo \x1b[1mbold"
            time.sleep(0.5)
            yield "the end"
            time.sleep(0.5)
            return ""
        """

    def test_says_which_check_runs_what_it_says_and_how_the_others_ended(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ddtree_patcher.verification.supervisor.PACE", 0.0)
        bench.run(self.PROGRAM)
        assert bench.said[-2:] == [
            "smoke: 1 passed, 1 failed; now third: one two bold",
            "smoke: 1 passed, 1 failed; now third: the end",
        ]

    def test_what_is_quick_says_nothing(self, bench: Bench) -> None:
        bench.run("def checks():\n    for number in range(100):\n        yield str(number), lambda: ''\n")
        assert bench.said == []

    def test_a_line_is_not_repeated_and_not_endless(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ddtree_patcher.verification.supervisor.PACE", 0.0)
        bench.run_one("import time\nyield 'x' * 100_000\ntime.sleep(1)\nyield 'x' * 100_000\ntime.sleep(0.5)")
        assert [len(line) for line in bench.said if "x" in line] == [len("smoke: ") + 200]

    def test_children_do_not_inherit_the_pipe_over_an_exec(self, bench: Bench) -> None:
        result = bench.run_one(
            """
            import os, subprocess, sys
            program = "import os; print(sum(os.path.exists(f'/proc/self/fd/{n}') for n in range(3, 50)))"
            assert not [name for name in os.environ if "PROGRESS" in name]
            child = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, close_fds=False)
            return child.stdout.decode()
            """
        )
        assert result.detail.split()[0] == "0"

    def test_the_program_runs_by_hand_without_a_listener(self, bench: Bench) -> None:
        bench.run(self.PROGRAM)
        command = [
            sys.executable,
            str(BOOTSTRAP),
            "--folder",
            str(bench.folder),
            str(bench.root / "programs/program.py"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        assert [check["outcome"] for check in answer["checks"]] == ["passed", "failed", "passed"]


class TestWhatIsMissing:
    def test_a_third_party_package_makes_it_not_run(self, bench: Bench) -> None:
        bench.write("sglang/needs.py", "import surely_not_installed.part\n")
        result = bench.run_one("import sglang.needs")
        assert result.outcome is CheckOutcome.NOT_RUN
        assert result.detail.startswith("surely_not_installed ")
        assert "not installed in Python 3." in result.detail

    def test_a_package_that_half_imported_does_not_fail_the_next_check(self, bench: Bench) -> None:
        bench.write("sglang/__init__.py", "import sglang.good\nimport surely_not_installed\n")
        results = bench.run(
            """
            def checks():
                yield "first", check
                yield "second", check
            def check():
                from sglang.good import VALUE
                return VALUE
            """
        )
        assert [result.outcome for result in results] == [CheckOutcome.NOT_RUN, CheckOutcome.NOT_RUN]

    def test_a_module_of_sglang_is_a_failure(self, bench: Bench) -> None:
        result = bench.run_one("import sglang.no_such_module")
        assert (result.outcome, "sglang.no_such_module" in result.detail) == (CheckOutcome.FAILED, True)

    def test_a_name_of_sglang_is_a_failure(self, bench: Bench) -> None:
        result = bench.run_one("from sglang.good import nothing")
        assert (result.outcome, "nothing" in result.detail) == (CheckOutcome.FAILED, True)

    def test_what_a_stand_in_lacks_makes_it_not_run_and_says_so(self, bench: Bench) -> None:
        result = bench.run_one("import torchvision.models")
        assert result.outcome is CheckOutcome.NOT_RUN
        assert result.detail.startswith("the stand-in for torchvision lacks")

    def test_a_program_that_needs_a_missing_package_itself(self, bench: Bench) -> None:
        (result,) = bench.run("import surely_not_installed")
        assert (result.id, result.outcome) == ("program", CheckOutcome.NOT_RUN)


class TestNoAnswer:
    def test_a_crash_gives_the_tail_of_standard_error(self, bench: Bench) -> None:
        result = bench.run_one("import os, sys; print('last words', file=sys.stderr, flush=True); os.abort()")
        assert (result.id, result.outcome) == ("program", CheckOutcome.FAILED)
        assert result.detail.startswith("ended by signal 6 before it answered")
        assert "last words" in result.detail

    def test_an_exit_in_the_middle(self, bench: Bench) -> None:
        result = bench.run_one("import os; os._exit(7)")
        assert result.detail.startswith("ended with status 7")
        assert bench.run_one("import os; os._exit(0)").detail.startswith("its answer cannot be read")

    def test_a_program_that_cannot_be_loaded_is_one_failed_check(self, bench: Bench) -> None:
        (result,) = bench.run("def checks(:\n")
        assert (result.id, result.outcome) == ("program", CheckOutcome.FAILED)
        assert "SyntaxError" in result.detail

    def test_checks_that_raise_between_two(self, bench: Bench) -> None:
        first, second = bench.run("def checks():\n    yield 'first', lambda: ''\n    raise ValueError('no more')\n")
        assert (first.outcome, second.id) == (CheckOutcome.PASSED, "program")
        assert second.detail.startswith("ValueError: no more")

    def test_the_time_limit_kills_it_and_its_children(self, bench: Bench) -> None:
        note = bench.root / "pid"
        result = bench.run_one(
            f"""
            import subprocess, time
            child = subprocess.Popen(["sleep", "300"])
            open({str(note)!r}, "w").write(str(child.pid))
            time.sleep(300)
            """,
            time_limit=2.0,
        )
        assert result.detail.startswith("no answer within 2 seconds")
        assert 2.0 <= result.seconds < 15.0
        assert _ends(int(note.read_text()))

    def test_it_says_what_was_going_on(self, bench: Bench) -> None:
        (result,) = bench.run(
            """
            import time
            def checks():
                yield "first", lambda: ""
                yield "second", slow
            def slow():
                yield "half way"
                time.sleep(300)
            """,
            time_limit=2.0,
        )
        assert result.detail.startswith("no answer within 2 seconds (1 passed; now second: half way)")

    def test_the_end_of_a_long_standard_error_without_its_colours(self, bench: Bench) -> None:
        result = bench.run_one(
            """
            import os, sys
            for number in range(100_000):
                print("\x1b[31mline", number, "\x1b[0m", file=sys.stderr)
            sys.stderr.flush()
            os.abort()
            """
        )
        assert "line 99999" in result.detail
        assert len(result.detail) < 2000
        assert "\x1b" not in result.detail

    def test_an_endless_line_is_cut(self, bench: Bench) -> None:
        result = bench.run_one("import os; os.write(2, b'x' * 1_000_000 + b'the end'); os.abort()")
        assert result.detail.endswith("xxxthe end") and len(result.detail) < 5000

    def test_an_interpreter_that_is_not_there(self, bench: Bench) -> None:
        (result,) = run_probe("/no/such/python", bench.folder, BOOTSTRAP, [], Tier.SMOKE, 5.0)
        assert result.outcome is CheckOutcome.FAILED
        assert result.detail.startswith("/no/such/python cannot be started")


class TestForks:
    """Programs fork: nothing that they start outlives them, and no fork of theirs answers in their place."""

    FAMILY = """
        import os, time
        def family(note):
            child = os.fork()
            if child == 0:
                grandchild = os.fork()
                with open(note, "a") as file:
                    file.write(f"{os.getpid()}\\n")
                time.sleep(300)
                os._exit(0)
            with open(note, "a") as file:
                file.write(f"{os.getpid()}\\n")
            while len(open(note).readlines()) < 3:
                time.sleep(0.05)
        """

    def pids(self, bench: Bench) -> list[int]:
        return [int(line) for line in (bench.root / "pids").read_text().split()]

    def test_the_time_limit_kills_them_all(self, bench: Bench) -> None:
        body = f"family({str(bench.root / 'pids')!r}); time.sleep(300)"
        (result,) = bench.run(self.program(body), time_limit=3.0)
        assert result.detail.startswith("no answer within 3 seconds")
        assert len(pids := self.pids(bench)) == 3 and all(map(_ends, pids))

    def test_those_left_behind_do_not_delay_the_answer_and_are_killed(self, bench: Bench) -> None:
        """They hold the pipes open that the answer comes through."""
        body = f"family({str(bench.root / 'pids')!r}); return 'done'"
        started = time.monotonic()
        (result,) = bench.run(self.program(body), time_limit=60.0)
        assert (result.outcome, result.detail[:4]) == (CheckOutcome.PASSED, "done")
        assert time.monotonic() - started < 15.0
        assert len(pids := self.pids(bench)) == 3 and all(map(_ends, pids))

    def test_one_that_left_the_group_does_not_delay_the_answer(self, bench: Bench) -> None:
        note = bench.root / "pid"
        body = f"""
            if os.fork() == 0:
                os.setsid()
                with open({str(note)!r}, "w") as file:
                    file.write(str(os.getpid()))
                while True:
                    os.write(2, b"noise" * 1000)
            while not os.path.exists({str(note)!r}) or not open({str(note)!r}).read():
                time.sleep(0.05)
            return "done"
            """
        started = time.monotonic()
        (result,) = bench.run(self.program(textwrap.dedent(body)), time_limit=60.0)
        assert (result.outcome, result.detail[:4]) == (CheckOutcome.PASSED, "done")
        assert time.monotonic() - started < 15.0
        assert _ends(int(note.read_text()))  # its pipe is closed

    def test_one_that_comes_back_from_its_check_does_not_answer(self, bench: Bench) -> None:
        first, second = bench.run(
            """
            import os
            def checks():
                yield "forks", forks
                yield "next", lambda: str(os.getpid())
            def forks():
                child = os.fork()
                if child == 0:
                    raise RuntimeError("in the child")
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                return f"{os.getpid()} {status}"
            """
        )
        owner, status = first.detail.split()[:2]
        assert (first.outcome, status) == (CheckOutcome.PASSED, "70")
        assert second.detail.split()[0] == owner

    def test_an_interruption_kills_them_all(self, bench: Bench) -> None:
        note = bench.root / "pids"

        def stop() -> None:
            for _ in range(300):
                if note.exists() and len(self.pids(bench)) == 3:
                    break
                time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it
        try:
            waiting = threading.Thread(target=stop)
            waiting.start()
            with pytest.raises(KeyboardInterrupt):
                bench.run(self.program(f"family({str(note)!r}); time.sleep(300)"), time_limit=60.0)
            waiting.join()
        finally:
            signal.signal(signal.SIGINT, before)
        assert len(pids := self.pids(bench)) == 3 and all(map(_ends, pids))

    def program(self, body: str) -> str:
        check = "def checks():\n    yield 'one', one\ndef one():\n" + textwrap.indent(body, "    ")
        return textwrap.dedent(self.FAMILY) + check


class TestImports:
    def test_each_module_is_imported_afresh_and_from_the_tree(self, bench: Bench) -> None:
        bench.write("sglang/first.py", "import sglang\nassert not hasattr(sglang, 'seen')\nsglang.seen = True\n")
        bench.write("sglang/second.py", "import sglang\nassert not hasattr(sglang, 'seen')\n")
        results = bench.imports("sglang.first", "sglang.second")
        assert {result.outcome for result in results.values()} == {CheckOutcome.PASSED}
        assert results["import:sglang.first"].detail.startswith("loaded from sglang/first.py")
        assert results["import:sglang.first"].tier is Tier.IMPORT

    def test_a_module_from_elsewhere_is_a_failure(self, bench: Bench) -> None:
        result = bench.imports("json")["import:json"]
        assert (result.outcome, "not under" in result.detail) == (CheckOutcome.FAILED, True)

    def test_one_that_hangs_crashes_or_exits_does_not_stop_the_next(self, bench: Bench) -> None:
        bench.write("sglang/hangs.py", "import time\ntime.sleep(300)\n")
        bench.write("sglang/crashes.py", "import os\nos.abort()\n")
        bench.write("sglang/exits.py", "raise SystemExit(4)\n")
        bench.write("sglang/needs.py", "import surely_not_installed\n")
        names = ["hangs", "crashes", "exits", "needs", "good"]
        results = bench.imports(*[f"sglang.{name}" for name in names], args=["--time-limit", "3"])
        details = {name: results[f"import:sglang.{name}"].detail for name in names}
        assert "still importing after 3 seconds" in details["hangs"]
        assert "ended with status -6 while importing" in details["crashes"]
        assert "SystemExit: 4" in details["exits"]
        assert results["import:sglang.needs"].outcome is CheckOutcome.NOT_RUN
        assert results["import:sglang.good"].outcome is CheckOutcome.PASSED

    def test_without_fork_a_new_interpreter_does_it(self, bench: Bench) -> None:
        bench.write("sglang/uses_kernels.py", "import sgl_kernel\nprint('noise')\n")
        results = bench.run(
            f"""
            import os, runpy, sys
            del os.fork
            sys.argv[1:] = ["sglang.uses_kernels", "sglang.no_such_module"]
            def checks():
                import importlib.util
                spec = importlib.util.spec_from_file_location("imports", {str(IMPORTS)!r})
                imports = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(imports)
                return imports.checks()
            """
        )
        assert [result.outcome for result in results] == [CheckOutcome.PASSED, CheckOutcome.FAILED]
        assert results[0].detail.startswith("loaded from sglang/uses_kernels.py")


def _ends(pid: int) -> bool:
    """Whether a process ends within a few seconds (a zombie that nobody reaps has ended too)."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False
