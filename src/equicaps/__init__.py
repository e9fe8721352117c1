"""Networks whose answers provably do not change when the input is turned, and which tell how it was turned.

An implementation of *Group Equivariant Capsule Networks* (Lenssen, Fey, Libuschewski, NeurIPS 2018) and what follows
from it. Conventions (axes, angles, the undefined pose) are on one page: ``docs/conventions.md``.
"""

from equicaps import functional, groups, nn, testing

__version__ = "0.1.0"

__all__ = ["__version__", "functional", "groups", "nn", "testing"]
