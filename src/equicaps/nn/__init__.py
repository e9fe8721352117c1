"""Modules: parameters plus one functional call each."""

from equicaps.nn.group_capsules import GroupCapsules

__all__ = ["GroupCapsules"]
