"""One example for each codemod primitive, in our own words: a call, a file that it fits, and files that it refuses.

``primitives_reference.py`` runs them, so that the reference shows what the code does. A primitive without one is an
error. A call is written as ruff formats it: it formats the blocks of documents too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """What a reader is shown of one primitive."""

    call: str  # the primitive as a step writes it: an expression over the names of ``ddtree_patcher.codemods``
    before: str = ""  # a file that it fits; empty for primitives that add a whole file
    refuses: tuple[str, ...] = ()  # files that it does not fit


EXAMPLES: Mapping[str, Example] = {
    "AddBranch": Example(
        """AddBranch("kv.py", Anchor('if kind == "paged": ...', scope="make"), 'kind == "tree"', "pool = Tree()\\n")""",
        """\
def make(kind):
    if kind == "paged":
        pool = PagedPool()
    else:
        pool = Pool()
    return pool
""",
        ('def make(kind):\n    if kind == "paged":\n        pool = 1\n    elif kind == "tree":\n        pool = 2\n',),
    ),
    "AddClass": Example(
        'AddClass("pool.py", "class TreePool(Pool):\\n    pass\\n", needs=("Pool",))',
        "class Pool:\n    pass\n",
        ("class TreePool:\n    size = 1\n",),
    ),
    "AddEnumMember": Example(
        'AddEnumMember("kinds.py", "Kind", "TREE", after="CHAIN")',
        """\
class Kind(Enum):
    CHAIN = auto()  # one draft
    NONE = auto()
""",
        ("class Kind(Enum):\n    NONE = auto()\n", "class Kind(Enum):\n    CHAIN = auto()\n    TREE = 7\n"),
    ),
    "AddField": Example(
        'AddField("args.py", "Args", "budget: int = 16\\n", after="seed")',
        """\
@dataclass
class Args:
    seed: int = 0

    def check(self): ...
""",
        ("class Arguments:\n    seed: int = 0\n", "class Args:\n    seed: int = 0\n    budget: int = 8\n"),
    ),
    "AddFile": Example('AddFile("sglang/srt/tree.py", b"SIZE = 16\\n")'),
    "AddMethod": Example(
        'AddMethod("kinds.py", "Kind", "def is_tree(self):\\n    return self is Kind.TREE\\n", after="is_chain")',
        """\
class Kind(Enum):
    CHAIN = auto()
    TREE = auto()

    def is_chain(self):
        return self is Kind.CHAIN
""",
        ("class Kind(Enum):\n    TREE = auto()\n",),
    ),
    "AddStampedFile": Example(
        "AddStampedFile(\n"
        '    "sglang/srt/stamp.py", b\'ID = "@PATCHSET_ID@"\\nVERSION = "@PATCHSET_VERSION@"\\n'
        'DIGEST = "@PATCHSET_DIGEST@"\\n\'\n)'
    ),
    "CatchAlso": Example(
        'CatchAlso("kernels.py", Anchor("try: ...\\nexcept ...: ..."), "OSError", beside="ImportError")',
        """\
try:
    import kernels
except ImportError:
    kernels = None
""",
        ("try:\n    import kernels\nexcept Exception:\n    kernels = None\n",),
    ),
    "EditCall": Example(
        'EditCall("worker.py", "start", "launch(...)", "timeout", old="...", new="600")',
        """\
def start(port):
    launch(port, timeout=30, retry=True)
""",
        ("def start(port):\n    launch(port)\n",),
    ),
    "EditCondition": Example(
        'EditCondition("worker.py", "run", old="self.kind == CHAIN", new="self.kind in (CHAIN, TREE)")',
        """\
def run(self):
    if self.kind == CHAIN:
        return self.verify()
""",
        ("def run(self):\n    if self.kind == CHAIN and self.ready:\n        return self.verify()\n",),
    ),
    "EnsureImport": Example(
        'EnsureImport("worker.py", "sglang.srt.tree", "TreeInput")',
        "from sglang.srt.tree import ChainInput, build  # both\n",
        ("import sglang.srt.tree\n",),
    ),
    "ExtendLiteral": Example(
        'ExtendLiteral("args.py", Anchor("CHOICES = ..."), \'"acme"\', beside=\'"llguidance"\')',
        'CHOICES = ["xgrammar", "llguidance", "none"]\n',
        ("CHOICES = load()\n", 'CHOICES = ["xgrammar"]\n'),
    ),
    "InsertAfter": Example(
        'InsertAfter("worker.py", Anchor("self.args = args", scope="Worker.__init__"), "self.tree = Tree(args)\\n")',
        """\
class Worker:
    def __init__(self, args):
        self.args = args
        # Last of all:
        self.start()
""",
        (
            "class Worker:\n    def __init__(self, args):\n        self.args = copy(args)\n",
            "class Worker:\n    def __init__(self, args):\n        if args:\n            self.args = args\n"
            "        else:\n            self.args = args\n",
        ),
    ),
    "InsertBefore": Example(
        'InsertBefore("worker.py", Anchor("self.start()", scope="Worker.__init__"), "self.tree = Tree(args)\\n")',
        """\
class Worker:
    def __init__(self, args):
        self.args = args
        # Last of all:
        self.start()
""",
        ("class Worker:\n    def run(self):\n        self.start()\n",),
    ),
    "InsertLast": Example(
        'InsertLast("args.py", "Args.__post_init__", "check_tree(self)\\n")',
        """\
class Args:
    def __post_init__(self):
        if self.seed is None:
            self.seed = 0
""",
        ("class Args:\n    pass\n",),
    ),
    "ReplaceExpression": Example(
        'ReplaceExpression("worker.py", "width", old="self.block_size", new="self.verify_width")',
        """\
def width(self):
    return self.block_size * 2
""",
        ("def width(self):\n    return self.block_size + self.block_size\n",),
    ),
    "SetConstant": Example(
        'SetConstant("server.py", "TIMEOUT", old="300", new="1800")',
        "TIMEOUT = 300  # seconds\n",
        ("TIMEOUT = 600\n",),
    ),
}
