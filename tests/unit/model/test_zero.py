from __future__ import annotations

import typing
from collections.abc import Iterator

import msgspec
import pytest

from ksp.model import apps, arguments, info, meta, node, pod, policy, storage
from ksp.model.meta import Int, LabelSelector
from ksp.model.quantity import Quantity
from ksp.model.selector import NOTHING
from ksp.model.zero import zero

MODULES = (apps, arguments, info, meta, node, pod, policy, storage)


def structs() -> Iterator[type[msgspec.Struct]]:
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct):
                yield value


@pytest.mark.parametrize("struct", list(dict.fromkeys(structs())), ids=repr)
def test_every_field_of_the_model_has_a_zero(struct: type[msgspec.Struct]) -> None:
    for hint in typing.get_type_hints(struct, include_extras=True).values():
        if typing.get_origin(hint) is not typing.ClassVar:
            assert zero(hint) is zero(hint)
    assert isinstance(zero(struct), struct)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, ""),
        (Int, 0),
        (int | None, 0),
        (bool, False),
        (float, 0.0),
        (tuple[str, ...], ()),
        (Quantity, 0),
        (dict[str, str] | None, {}),
        (pod.Affinity | None, pod.Affinity()),
    ],
)
def test_zeros(hint: object, expected: object) -> None:
    found = zero(hint)
    assert found == expected
    assert type(found) is type(expected) or expected == {}


def test_an_absent_selector_is_nothing() -> None:
    assert zero(LabelSelector) is zero(LabelSelector | None) is NOTHING
    assert zero(info.NodeInfo) is info.EMPTY_NODE
    assert zero(info.PodInfo) is info.EMPTY_POD


def test_the_empty_map_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        zero(dict[str, int])["a"] = 1  # type: ignore[index]


def test_a_type_that_the_model_does_not_use() -> None:
    with pytest.raises(TypeError, match="no zero of"):
        zero(set[str])
