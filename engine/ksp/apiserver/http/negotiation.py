"""Which form of an answer a client accepts: JSON or YAML; the object, a Table, or its metadata alone."""

from dataclasses import dataclass
from typing import Final, Literal

from ksp.apiserver.status import ApiStatusError, failure, plain_error
from ksp.apiserver.versions import Version

Transform = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written."""

    media_type: Literal["application/json", "application/yaml"] = "application/json"
    transform: Transform = ""
    transform_version: str = "v1"
    pretty: bool = False


PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_SERVED: Final = ("application/json", "application/yaml", PROTOBUF)
_STREAMS: Final = ("application/json;stream=watch", f"{PROTOBUF};stream=watch")
_ANY: Final = frozenset({"*/*", "application/*"})
_TRANSFORMS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(frozen=True, slots=True)
class Clause:
    """One media type of an Accept header, with its parameters."""

    media_type: str
    parameters: dict[str, str]


def clauses(accept: str) -> list[Clause]:
    """In the order of preference: by q, then as written."""
    found: list[tuple[float, int, Clause]] = []
    for index, text in enumerate(accept.split(",")):
        media_type, *rest = (part.strip() for part in text.split(";"))
        if not media_type:
            continue
        parameters = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
        found.append((-_quality(parameters.pop("q", "1")), index, Clause(media_type, parameters)))
    return [clause for _, _, clause in sorted(found, key=lambda row: row[:2])]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def negotiate(
    accept: str | None, version: Version, *, watch: bool = False, streams: bool = False, pretty: bool = False
) -> Form:
    """The first form that is served; protobuf is not, so a client that would also take JSON gets JSON.

    `streams` says that the path can also be watched. Raises 406 in the two ways of the real server: by media type
    alone, or by its parameters.
    """
    wanted = clauses(accept) if accept else []
    if not wanted:
        return Form(pretty=pretty)
    if not any(clause.media_type in _ANY or clause.media_type in _SERVED for clause in wanted):
        raise _nothing_fits(version, streams=streams)
    for clause in wanted:
        form = _form(clause, watch=watch, pretty=pretty)
        if form is not None:
            return form
    raise unacceptable(watch=watch)


def _form(clause: Clause, *, watch: bool, pretty: bool) -> Form | None:
    if clause.media_type == "application/yaml" and not watch:
        return Form("application/yaml", pretty=pretty) if "as" not in clause.parameters else None
    if clause.media_type != "application/json" and clause.media_type not in _ANY:
        return None
    kind = clause.parameters.get("as", "")
    if not kind:
        return Form(pretty=pretty)
    if kind not in _TRANSFORMS or clause.parameters.get("g") != "meta.k8s.io":
        return None
    if clause.parameters.get("v") not in {"v1", "v1beta1"}:
        return None
    return Form("application/json", _transform(kind), clause.parameters["v"], pretty)


def _transform(kind: str) -> Transform:
    match kind:
        case "Table":
            return "Table"
        case "PartialObjectMetadata":
            return "PartialObjectMetadata"
        case _:
            return "PartialObjectMetadataList"


def _nothing_fits(version: Version, *, streams: bool) -> ApiStatusError:
    text = "406: Not Acceptable"
    if version.lists_representations:
        text += f"\n\nAvailable representations: {', '.join(_SERVED + (_STREAMS if streams else ()))}"
    return ApiStatusError(failure(406, "NotAcceptable", text, {}))


def unacceptable(*, watch: bool = False) -> ApiStatusError:
    served = _STREAMS if watch else _SERVED
    text = f"only the following media types are accepted: {', '.join(served)}"
    return plain_error(406, text, "NotAcceptable")
