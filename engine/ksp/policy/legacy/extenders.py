"""The extenders of a legacy Policy: how they are read, and what must hold of them.

kube-scheduler reads them with another decoder than the rest: names of fields match in any case, and unknown ones are
passed over (here they are told of).
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from ksp.check.report import nearest
from ksp.policy.extender import DEFAULT_TIMEOUT, Extender, ExtenderTLS
from ksp.policy.legacy.mistakes import Mistake, Steps, mistake
from ksp.policy.legacy.model import LegacyExtender, ManagedResource
from ksp.policy.legacy.shapes import Shapes, by_lower_case
from ksp.policy.legacy.words import quoted
from ksp.policy.resource_names import extended_resource_errors

NANOSECONDS: Final = 10**9
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h)")
_UNITS: Final = {"ms": NANOSECONDS // 1000, "s": NANOSECONDS, "m": 60 * NANOSECONDS, "h": 3600 * NANOSECONDS}

Read = Callable[[Any, Steps], Any]


class ExtenderReader:
    """Reads extenders; what is wrong goes to `shapes`, what nobody reads to `ignored`."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.ignored: list[Mistake] = []

    def read(self, value: Any, steps: Steps) -> LegacyExtender:
        shapes = self.shapes
        fields: Mapping[str, tuple[str, Read]] = {
            "urlPrefix": ("url_prefix", shapes.text),
            "filterVerb": ("filter_verb", shapes.text),
            "prioritizeVerb": ("prioritize_verb", shapes.text),
            "preemptVerb": ("preempt_verb", shapes.text),
            "bindVerb": ("bind_verb", shapes.text),
            "weight": ("weight", shapes.integer),
            "enableHttps": ("enable_https", shapes.boolean),
            "tlsConfig": ("tls", self._tls),
            "httpTimeout": ("timeout", self._timeout),
            "nodeCacheCapable": ("node_cache_capable", shapes.boolean),
            "managedResources": ("managed", self._managed),
            "ignorable": ("ignorable", shapes.boolean),
        }
        return LegacyExtender(**self._fields(value, steps, fields))

    def _managed(self, value: Any, steps: Steps) -> tuple[ManagedResource, ...]:
        return self.shapes.items(value, steps, self._resource)

    def _resource(self, value: Any, steps: Steps) -> ManagedResource:
        fields: Mapping[str, tuple[str, Read]] = {
            "name": ("name", self.shapes.text),
            "ignoredByScheduler": ("ignored", self.shapes.boolean),
        }
        return ManagedResource(**self._fields(value, steps, fields))

    def _tls(self, value: Any, steps: Steps) -> Mapping[str, Any]:
        text, data = self.shapes.text, self._data
        fields: Mapping[str, tuple[str, Read]] = {
            "insecure": ("insecure", self.shapes.boolean),
            "serverName": ("server_name", text),
            "certFile": ("cert_file", text), "keyFile": ("key_file", text), "caFile": ("ca_file", text),
            "certData": ("cert_data", data), "keyData": ("key_data", data), "caData": ("ca_data", data),
        }  # fmt: skip
        return self._fields(value, steps, fields)

    def _data(self, value: Any, steps: Steps) -> bytes:
        try:
            return b64decode(self.shapes.text(value, steps), validate=True)
        except (binascii.Error, ValueError):
            self.shapes.note("not base64", steps)
            return b""

    def _timeout(self, value: Any, steps: Steps) -> int:
        """In nanoseconds: a Go duration, which is a number in JSON."""
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        hint = f"it is in nanoseconds: {int(match[1]) * _UNITS[match[2]]}" if match else "it is in nanoseconds"
        return self.shapes.integer(value, steps, hint)

    def _fields(self, value: Any, steps: Steps, known: Mapping[str, tuple[str, Read]]) -> dict[str, Any]:
        """The known fields that are not null, read, by their names in Python. A later spelling of one wins."""
        if not isinstance(value, dict):
            self.shapes.fields(value, steps, ())
            return {}
        by_lower = {name.lower(): name for name in known}
        made: dict[str, Any] = {}
        for lower, written, inner in by_lower_case(value):
            if lower not in by_lower:
                near = nearest(written, known)
                hint = f"did you mean `{near}`?" if near else ""
                self.ignored.append(
                    mistake(f"found unknown field, which is ignored: {written}", (*steps, written), hint)
                )
            elif inner is not None:
                field, read = known[by_lower[lower]]
                made[field] = read(inner, (*steps, written))
        return made


def extender_mistakes(extenders: Sequence[LegacyExtender]) -> Iterator[Mistake]:
    """What kube-scheduler does not accept, in its order."""
    binders: list[int] = []
    seen: set[str] = set()
    for i, extender in enumerate(extenders):
        steps: Steps = ("extenders", i)
        if extender.prioritize_verb and extender.weight <= 0:
            said = f"Priority for extender {extender.url_prefix} should have a positive weight applied to it"
            yield mistake(said, (*steps, "weight"))
        if extender.bind_verb:
            binders.append(i)
        for j, resource in enumerate(extender.managed):
            where: Steps = (*steps, "managedResources", j, "name")
            for said in extended_resource_errors(resource.name):
                yield mistake(said, where)
            if resource.name in seen:
                yield mistake(f"Duplicate extender managed resource name {resource.name}", where)
            seen.add(resource.name)
    if len(binders) > 1:
        said = f"Only one extender can implement bind, found {len(binders)}"
        yield mistake(said, ("extenders", binders[1], "bindVerb"))


def extender_warnings(extenders: Sequence[LegacyExtender]) -> Iterator[Mistake]:
    """What kube-scheduler starts with, and fails of whenever it asks the extender."""
    for i, extender in enumerate(extenders):
        if not _is_url(extender.url_prefix):
            said = f"{quoted(extender.url_prefix)} is not a URL with http:// or https:// and a host: asking it fails"
            yield mistake(said, ("extenders", i, "urlPrefix"))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def extenders_of(extenders: Sequence[LegacyExtender]) -> tuple[Extender, ...]:
    """As the core takes them: those that may fail come last."""
    return tuple(_extender(each) for each in sorted(extenders, key=lambda each: each.ignorable))


def _extender(legacy: LegacyExtender) -> Extender:
    return Extender(
        url_prefix=legacy.url_prefix,
        filter_verb=legacy.filter_verb,
        prioritize_verb=legacy.prioritize_verb,
        preempt_verb=legacy.preempt_verb,
        bind_verb=legacy.bind_verb,
        weight=legacy.weight,
        enable_https=legacy.enable_https,
        tls=None if legacy.tls is None else ExtenderTLS(**legacy.tls),
        timeout=legacy.timeout / NANOSECONDS if legacy.timeout else DEFAULT_TIMEOUT,
        node_cache_capable=legacy.node_cache_capable,
        managed_resources=frozenset(each.name for each in legacy.managed),
        ignored_resources=frozenset(each.name for each in legacy.managed if each.ignored),
        ignorable=legacy.ignorable,
    )
