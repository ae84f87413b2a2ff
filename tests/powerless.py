"""A process to whom permission bits apply, whoever runs the tests."""

from __future__ import annotations

import ctypes
import os


def drop_capabilities() -> None:
    """For good: root's own power to write where nobody may write. Ends the process where that is not possible."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    nothing = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: twice 32 bits each
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing):
        os._exit(99)
