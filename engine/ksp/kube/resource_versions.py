"""Which of two resource versions is the later one.

By contract they were opaque for long: equal or not. In fact every server counts them up for each write, and since
Kubernetes 1.35 (KEP-5504) that is promised: decimal numbers, to be compared among objects of one resource. What is no
decimal number is compared for equality only, so that nothing is dropped for a guess.
"""

from __future__ import annotations


def is_newer(version: str, than: str) -> bool:
    """False only where `version` is known to be the same as `than` or older."""
    if _number(version) and _number(than):
        return (len(version), version) > (len(than), than)
    return version != than


def is_older(version: str, than: str) -> bool:
    """True only where `version` is known to be older than `than`."""
    return _number(version) and _number(than) and (len(version), version) < (len(than), than)


def _number(version: str) -> bool:
    """Positive, and without leading zeros: then the longer is the greater, and texts of one length sort as numbers."""
    return version.isascii() and version.isdecimal() and version[0] != "0"
