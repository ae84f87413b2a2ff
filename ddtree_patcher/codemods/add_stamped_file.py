"""``add_stamped_file``: a module that the package does not have, and that says which patchset brought it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import PatchsetError
from ..model import PatchsetIdentity
from .add_file import AddFile

PLACEHOLDERS = {"id": b'"@PATCHSET_ID@"', "version": b'"@PATCHSET_VERSION@"', "digest": b'"@PATCHSET_DIGEST@"'}


@dataclass(frozen=True, slots=True)
class AddStampedFile(AddFile):
    """Add a whole Python file in which each of ``PLACEHOLDERS``, a text of its own, stands for the patchset's identity.

    They are filled in when the patchset is loaded, and so before anything is planned: a file cannot hold the digest of
    the patchset that it belongs to.
    """

    def stamped(self, identity: PatchsetIdentity) -> AddStampedFile:
        """The file as it is added. Raises ``PatchsetError`` unless each placeholder is there exactly once."""
        content = self.content
        for name, placeholder in PLACEHOLDERS.items():
            times = content.count(placeholder)
            if times != 1:
                all_of_them = ", ".join(item.decode() for item in PLACEHOLDERS.values())
                raise PatchsetError(
                    f"{self.path} is stamped, and has {placeholder.decode()} {times} times, not once",
                    remedy=f"Let the file assign each of {all_of_them} to a constant, once.",
                    path=self.path,
                )
            content = content.replace(placeholder, _literal(getattr(identity, name)))
        return AddStampedFile(self.path, content)

    def misfits(self, data: bytes) -> Iterator[str]:
        """The constants of a file that say another patchset than the one that this was stamped with."""
        expected, found = _constants(self.content), _constants(data)
        for name, value in expected.items():
            if name not in found:
                yield f"{self.path} does not say what its {name} is"
            elif found[name] != value:
                yield f"{self.path} says that its {name} is {found[name]!r}, and this patchset's is {value!r}"


def _literal(text: str) -> bytes:
    """In double quotes, as the placeholder was."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")).encode()


def _constants(data: bytes) -> dict[str, str]:
    """Name → text, of the module's assignments of one string to one name; none of a file that is not Python."""
    try:
        body = ast.parse(data).body
    except (SyntaxError, ValueError):
        return {}
    return {
        node.targets[0].id: node.value.value
        for node in body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
