"""Int arithmetic: what is wrapped, and what need not be."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import compiled, predicate, rule
from tests.unit.core.scheduling import cluster, node

from ksp.check.typed import Let, Op
from ksp.compile.bounds import FULL, fits_in_64_bits, interval
from ksp.compile.inline import inline

MAX = 2**63 - 1


def made(text: str) -> Op:
    """The expression, as the compiler sees it."""
    let = rule(f'predicate P {{ let x = {text} deny "no" when x == node.podCount }}').body[0]
    assert isinstance(let, Let)
    assert let.binding.value is not None
    value = inline(let.binding.value)
    assert isinstance(value, Op)
    return value


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("size(pod.name) + 1", (0, 2**31 + 1)),
        ("size(pod.name) - size(pod.uid)", (-1 - 2**31, 2**31 + 1)),
        ("size(pod.name) * -3", (-3 * 2**31, 3)),
        ("-size(pod.name)", (-(2**31), 1)),
        ("(pod.terminating ? 1 : 7) * 10", (10, 70)),
        ("node.podCount + 1", FULL),
        ("size(pod.name) * 4294967296", FULL),
    ],
)
def test_bounds_hold_every_value(text: str, bounds: tuple[int, int]) -> None:
    assert interval(made(text)) == bounds
    assert fits_in_64_bits(made(text)) == (bounds != FULL)


def test_only_what_can_leave_64_bits_is_wrapped() -> None:
    assert "_wrap" not in compiled('predicate P { deny "no" when size(node.name) * 10 + 1 > 5 }').source
    assert "_wrap" in compiled('predicate P { deny "no" when node.podCount + 1 > 5 }').source


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"node.podCount + {MAX} + 1", -(2**63)),
        (f"(node.podCount + {MAX}) * 2", -2),
        (f"-(node.podCount - {MAX} - 1)", -(2**63)),
        (f"abs(node.podCount - {MAX} - 1)", -(2**63)),
        (f"div(node.podCount - {MAX} - 1, -1, 0)", -(2**63)),
        (f"[{MAX}, node.podCount + 1].sum()", -(2**63)),
        (f"max(node.podCount + {MAX} + 1, 5)", 5),
    ],
)
def test_ints_wrap_wherever_they_are_looked_at(text: str, value: int) -> None:
    state = cluster(node("n"))
    check = predicate(f'predicate P {{ deny "${{{text}}}" when true }}', state).check
    assert check is not None
    verdict = check(state.nodes["n"])
    assert getattr(verdict, "reasons", ()) == (str(value),)
