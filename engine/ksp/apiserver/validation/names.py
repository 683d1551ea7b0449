"""What names, label keys and values may look like, in the words of apimachinery's `util/validation`.

Each check gives a list of sentences, none if the text is right.
"""

import re
from collections.abc import Callable
from typing import Final

from ksp.apiserver.versions import Version

Check = Callable[[str, Version], list[str]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_QUALIFIED})?"
_ENV: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"

_ENDS: Final = "must start and end with an alphanumeric character"


def _rule(message: str, pattern: str, *examples: str) -> str:
    """`regexError`: the message with examples and the expression."""
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {shown}, regex used for validation is '{pattern}')"


def _at_most(size: int) -> str:
    return f"must be no more than {size} characters"


def subdomain(text: str, version: Version) -> list[str]:
    """A name of most kinds."""
    found = [_at_most(253)] if len(text) > 253 else []
    if not re.fullmatch(_SUBDOMAIN, text):
        kind = "a lowercase RFC 1123" if version.lowercase_rfc_1123 else "a DNS-1123"
        message = f"{kind} subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS}"
        found.append(_rule(message, _SUBDOMAIN, "example.com"))
    return found


def label(text: str, version: Version) -> list[str]:
    """Names of namespaces, containers, ports, volumes."""
    found = [_at_most(63)] if len(text) > 63 else []
    if not re.fullmatch(_LABEL, text):
        kind = "a lowercase RFC 1123" if version.lowercase_rfc_1123 else "a DNS-1123"
        message = f"{kind} label must consist of lower case alphanumeric characters or '-', and {_ENDS}"
        found.append(_rule(message, _LABEL, "my-name", "123-abc"))
    return found


def dns_1035(text: str, version: Version) -> list[str]:
    """Names of services."""
    found = [_at_most(63)] if len(text) > 63 else []
    if not re.fullmatch(_DNS_1035, text):
        message = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character"
        )
        found.append(_rule(message, _DNS_1035, "my-name", "abc-123"))
    return found


def path_segment(text: str, version: Version) -> list[str]:
    """What can stand in a path: names that are not restricted further (leases, priority levels, ...)."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in ("/", "%") if sign in text]


def qualified_name(text: str, version: Version) -> list[str]:
    """Label keys, names of taints and resources: `name` or `example.com/name`."""
    part = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
    prefix, slash, name = text.partition("/")
    if "/" in name:
        rule = _rule(f"a qualified name {part}", _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found: list[str] = []
    if not slash:
        name = prefix
    elif not prefix:
        found.append("prefix part must be non-empty")
    else:
        found += [f"prefix part {message}" for message in subdomain(prefix, version)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append(f"name part {_at_most(63)}")
    if not re.fullmatch(_QUALIFIED, name):
        found.append(_rule(f"name part {part}", _QUALIFIED, "MyName", "my.name", "123-abc"))
    return found


def label_value(text: str, version: Version) -> list[str]:
    found = [_at_most(63)] if len(text) > 63 else []
    if not re.fullmatch(_VALUE, text):
        message = (
            f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
        )
        found.append(_rule(message, _VALUE, "MyValue", "my_value", "12345"))
    return found


def environment_name(text: str, version: Version) -> list[str]:
    """Newer versions take all that is printable but for `=`."""
    if version.relaxed_environment_names:
        if text.isascii() and text.isprintable() and "=" not in text:
            return []
        return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    if re.fullmatch(_ENV, text):
        return []
    message = (
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
        "and must not start with a digit"
    )
    return [_rule(message, _ENV, "my.env-name", "MY_ENV.NAME", "MyEnvName1")]


def config_key(text: str, version: Version) -> list[str]:
    """Keys of ConfigMaps and Secrets."""
    found = [_at_most(253)] if len(text) > 253 else []
    if not re.fullmatch(_CONFIG_KEY, text):
        message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(_rule(message, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return found
