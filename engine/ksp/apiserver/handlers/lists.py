"""Lists and gets: which version of the objects is meant, pages, and what is too old or not there yet."""

import bisect
from dataclasses import dataclass
from typing import Any

from ksp.apiserver.clock import sleep
from ksp.apiserver.handlers import list_options
from ksp.apiserver.handlers.list_options import Options, Token
from ksp.apiserver.http.render import many, one
from ksp.apiserver.state import Answer, Call
from ksp.apiserver.status import ApiStatusError, bad_request, failure, not_found, plain_error
from ksp.apiserver.store import Key

Json = dict[str, Any]

FUTURE_WAIT = 3.0
"""Seconds that a list waits for a resourceVersion that has not come yet."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a list found."""

    revision: int
    objects: list[Json]
    continuation: str = ""
    remaining: int | None = None


async def get(call: Call) -> Answer:
    """One object. `resourceVersion` asks for one that is not older; selectors are ignored."""
    target, state = call.target, call.state
    revision = list_options.revision_of(target.query.get("resourceVersion", ""))
    if revision > state.store.revision:
        await _wait_for(revision, call)
    found = state.store.get(call.resource.storage_id, call.context().namespace, target.name)
    if found is None:
        raise not_found(call.resource.group, call.resource.plural, target.name)
    return Answer(200, one(found, call))


async def list_all(call: Call) -> Answer:
    page = await select(call, list_options.read(call))
    meta: Json = {"resourceVersion": str(page.revision)}
    if page.continuation:
        meta["continue"] = page.continuation
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return Answer(200, many(page.objects, meta, call))


def cached(call: Call) -> bool:
    return call.resource.storage_id not in call.state.uncached


async def select(call: Call, options: Options) -> Page:
    """The objects that a list asks for. Raises 400, 410, 500 and 504."""
    if options.continuation and options.revision not in {"", "0"}:
        raise bad_request("specifying resource version is not allowed when using continue")
    version = call.state.version
    if options.continuation and not (options.revision == "0" and version.cached_history):
        return _continued(call, options)
    if options.continuation:
        token = list_options.token(options.continuation, call)
        return _page(call, options, Token(token.revision, token.start), limit=0)
    revision = list_options.revision_of(options.revision, list_of=call)
    exact = options.match == "Exact" or (revision > 0 and options.limit > 0 and options.match != "NotOlderThan")
    if exact:
        return await _at(call, options, revision)
    if revision > call.state.store.revision:
        await _wait_for(revision, call)
    if options.revision and cached(call):
        return _from_cache(call, options)
    return _page(call, options, Token(call.state.store.revision, ""), limit=options.limit)


def _from_cache(call: Call, options: Options) -> Page:
    """Everything at once, whatever the limit; in the older version in any order."""
    page = _page(call, options, Token(call.state.store.revision, ""), limit=0)
    if call.state.version.cached_lists_sorted:
        return page
    order = call.state.dice.shuffled(len(page.objects))
    return Page(page.revision, [page.objects[index] for index in order])


async def _at(call: Call, options: Options, revision: int) -> Page:
    """At one version exactly."""
    store, version = call.state.store, call.state.version
    if revision > store.revision:
        if not version.cached_history:
            raise plain_error(500, "etcdserver: mvcc: required revision is a future revision")
        await _wait_for(revision, call)
    if not _is_kept(call, revision):
        raise list_options.expired(list_options.LIST_TOO_OLD)
    return _page(call, options, Token(revision, ""), limit=options.limit)


def _is_kept(call: Call, revision: int) -> bool:
    """Whether the objects of a version can still be told: an etcd has those since its compaction, newer versions ask

    the watch cache alone. What the log does not reach back to cannot be told in any case.
    """
    store = call.state.store
    since = store.kind(call.resource.storage_id).since
    return revision >= (since if call.state.version.cached_history and cached(call) else max(since, store.compacted))


def _continued(call: Call, options: Options) -> Page:
    token = list_options.token(options.continuation, call)
    if token.revision >= 0 and not _is_kept(call, token.revision):
        status = failure(410, "Expired", list_options.CONTINUE_TOO_OLD)
        status["metadata"] = {"continue": Token(-1, token.start).text("")}
        raise ApiStatusError(status)
    if token.revision < 0:
        token = Token(call.state.store.revision, token.start)
    return _page(call, options, token, limit=options.limit)


def _page(call: Call, options: Options, token: Token, *, limit: int) -> Page:
    """From the token's key on, at the token's version."""
    state = call.state
    kind = state.store.kind(call.resource.storage_id)
    namespace = call.context().namespace or None
    if token.revision >= state.store.revision:
        objects, keys = kind.objects, kind.keys(namespace)
    else:
        objects = kind.at(token.revision)
        keys = sorted(key for key in objects if namespace is None or key[0] == namespace)
    if token.start:
        keys = keys[bisect.bisect_left([_path(key, namespace) for key in keys], token.start) :]
    found: list[Json] = []
    fits = options.fits
    for index, key in enumerate(keys):
        obj = objects[key]
        if fits is not None and not fits(obj):
            continue
        found.append(obj)
        if limit and len(found) == limit and index + 1 < len(keys):
            slash = "/" if state.version.cached_history and cached(call) else ""
            following = Token(token.revision, _path(key, namespace) + "\0").text(slash)
            return Page(token.revision, found, following, None if fits is not None else len(keys) - index - 1)
    return Page(token.revision, found)


def _path(key: Key, namespace: str | None) -> str:
    """A key relative to the collection."""
    return key[1] if namespace is not None or not key[0] else f"{key[0]}/{key[1]}"


async def _wait_for(revision: int, call: Call) -> None:
    """Gives a version some time to come to the watch cache; etcd knows at once. Raises 504."""
    store = call.state.store
    if cached(call):
        await sleep(call.state.clock, FUTURE_WAIT)
    if revision > store.revision:
        raise list_options.too_large(revision, store.revision, retry=cached(call))
