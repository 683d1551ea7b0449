"""Validation of what all objects have: metadata, label selectors; and the small checks of which kinds make theirs.

Checks give Causes, in kube-apiserver's order and words.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ksp.apiserver.status import (
    Cause,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from ksp.apiserver.strategy import Json
from ksp.apiserver.validation import names
from ksp.apiserver.versions import Version

ANNOTATIONS_LIMIT: Final = 256 * 1024
"""Bytes of all annotations of an object."""

_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def quoted(text: str) -> str:
    """As Go's %q."""
    return json.dumps(text, ensure_ascii=False)


def shown(value: Any) -> str:
    """A value as it stands in a cause."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def named(text: str, field: str, check: names.Check, version: Version) -> list[Cause]:
    """A cause for each rule that `text` breaks."""
    return [invalid_value(field, quoted(text), message) for message in check(text, version)]


def one_of(value: str, field: str, allowed: Sequence[str], version: Version) -> list[Cause]:
    """One of a set of constants; which must be given."""
    if value in allowed:
        return []
    return [not_supported(field, quoted(value), "supported values: " + ", ".join(quoted(each) for each in allowed))]


def not_negative(value: int | None, field: str) -> list[Cause]:
    if value is None or value >= 0:
        return []
    return [invalid_value(field, str(value), "must be greater than or equal to 0")]


def immutable(new: Any, old: Any, field: str) -> list[Cause]:
    return [] if new == old else [invalid_value(field, shown(new), "field is immutable")]


def validate_metadata(
    meta: Json, version: Version, *, namespaced: bool, name: names.Check = names.subdomain, core: bool = True
) -> list[Cause]:
    """`ObjectMeta` of an object that is created. `core`: finalizers without a slash must be standard ones."""
    return [
        *_validate_name(meta, version, name),
        *([] if meta.get("namespace") or not namespaced else [required("metadata.namespace")]),
        *not_negative(meta.get("generation"), "metadata.generation"),
        *validate_labels(meta.get("labels") or {}, "metadata.labels", version),
        *_validate_annotations(meta.get("annotations") or {}, version),
        *_validate_owners(meta.get("ownerReferences") or ()),
        *_validate_finalizers(meta.get("finalizers") or (), version, core=core),
    ]


def _validate_name(meta: Json, version: Version, check: names.Check) -> list[Cause]:
    generated = meta.get("generateName", "")
    found: list[Cause] = []
    if generated:
        # What is appended is a suffix of letters, so a trailing dash is right.
        probe = generated.removesuffix("-") + "a" if generated.endswith("-") else generated
        found = [
            invalid_value("metadata.generateName", quoted(generated), message) for message in check(probe, version)
        ]
    if not meta.get("name"):
        return [*found, required("metadata.name", "name or generateName is required")]
    return [*found, *named(meta["name"], "metadata.name", check, version)]


def validate_labels(labels: Mapping[str, str], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    for key, value in labels.items():
        found += named(key, field, names.qualified_name, version)
        found += named(value, field, names.label_value, version)
    return found


def _validate_annotations(annotations: Mapping[str, str], version: Version) -> list[Cause]:
    found: list[Cause] = []
    for key in annotations:
        messages = names.qualified_name(key.lower(), version)
        found += [invalid_value("metadata.annotations", quoted(key), message) for message in messages]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        found.append(too_long("metadata.annotations", at_most_bytes(ANNOTATIONS_LIMIT, version)))
    return found


def at_most_bytes(size: int, version: Version) -> str:
    """What a text that is too long may have."""
    return f"{'may not be more than' if version.may_not_be_more_than else 'must have at most'} {size} bytes"


def _validate_owners(owners: Iterable[Json]) -> list[Cause]:
    found: list[Cause] = []
    controllers: list[Json] = []
    for owner in owners:
        field = "metadata.ownerReferences"
        for name, what in (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")):
            if not owner.get(name):
                found.append(invalid_value(f"{field}.{name}", '""', f"{what} must not be empty"))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        one, two = (f"{owner.get('kind', '')}/{owner.get('name', '')}" for owner in controllers[:2])
        text = f'Only one reference can have Controller set to true. Found "true" in references for {one} and {two}'
        found.append(invalid_value("metadata.ownerReferences", shown(controllers), text))
    return found


def _validate_finalizers(finalizers: Sequence[str], version: Version, *, core: bool) -> list[Cause]:
    found: list[Cause] = []
    for text in finalizers:
        found += named(text, "metadata.finalizers", names.qualified_name, version)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid_value("metadata.finalizers", shown(list(finalizers)), text))
    for index, text in enumerate(finalizers if core else ()):
        if "/" not in text and text not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid_value(f"metadata.finalizers[{index}]", quoted(text), why))
    return found


def validate_metadata_update(new: Json, old: Json) -> list[Cause]:
    """No new finalizers once an object is being deleted. Uid, name and times are seen to before."""
    found: list[Cause] = []
    if old.get("deletionTimestamp"):
        before = set(old.get("finalizers") or ())
        added = [text for text in new.get("finalizers") or () if text not in before]
        if added:
            listed = "[]string{" + ", ".join(quoted(text) for text in sorted(added)) + "}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
            found.append(forbidden_field("metadata.finalizers", why))
    return found


def validate_selector(selector: Json | None, field: str, version: Version) -> list[Cause]:
    """A metav1.LabelSelector."""
    if selector is None:
        return []
    found = validate_labels(selector.get("matchLabels") or {}, f"{field}.matchLabels", version)
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        found += _validate_requirement(term, f"{field}.matchExpressions[{index}]", version)
    return found


def _validate_requirement(term: Json, field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    operator, values = term.get("operator", ""), term.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                found.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden_field(f"{field}.values", text))
        case _:
            found.append(invalid_value(f"{field}.operator", quoted(operator), "not a valid selector operator"))
    return [*found, *named(term.get("key", ""), f"{field}.key", names.qualified_name, version)]
