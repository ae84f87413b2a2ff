"""Stand-in: see the package."""

from enum import Enum

from .._refusing import refusing


class InterpolationMode(Enum):
    """How pixels between pixels are computed."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


pil_to_tensor = refusing("transforms.functional.pil_to_tensor")
