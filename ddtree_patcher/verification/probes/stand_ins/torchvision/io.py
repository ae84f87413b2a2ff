"""Stand-in: see the package."""

from enum import Enum

from ._refusing import refusing


class ImageReadMode(Enum):
    """How many channels a decoded image has."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


decode_image = refusing("io.decode_image")
decode_jpeg = refusing("io.decode_jpeg")
