from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web
from tests.unit.kube.certificates import Authority
from tests.unit.kube.plugins import TokenShop
from tests.unit.kube.servers import serving
from tests.unit.kube.timers import START, VirtualTimers, settle

from ksp.kube.auth.credentials import Credentials, Issued, User
from ksp.kube.auth.tls import KeyPair, Pem, Trust
from ksp.kube.errors import ApiError, ConfigError
from ksp.kube.http.client import Client

FIRST = START.timestamp()


@dataclass
class Door:
    """A server that lets in who has a good token, and counts whom it does not."""

    shop: TokenShop
    skew: float = 0.0
    refused: int = 0
    methods: list[str] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self.shop.accepts(request.headers.get("Authorization"), self.skew):
            self.refused += 1
            return web.json_response(
                {"kind": "Status", "message": "Unauthorized", "reason": "Unauthorized"}, status=401
            )
        self.methods.append(request.method)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"a":1}\n')
        return response


@pytest.fixture
def timers() -> VirtualTimers:
    return VirtualTimers()


@pytest.fixture
def shop(tmp_path: Path, timers: VirtualTimers) -> TokenShop:
    return TokenShop(tmp_path, timers)


# --- exec plugins with tokens that are good for two seconds ----------------------------------------------------------


async def test_two_second_tokens_are_renewed_before_anybody_is_refused(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, qps=0, clock=timers) as client,
    ):
        for _ in range(20):
            await asyncio.gather(*(client.request("POST", "/x", body=b"{}") for _ in range(5)))
            async with client.stream("/w", inactivity=60) as lines:
                assert [line async for line in lines] == [b'{"a":1}']
            await shop.advance(0.5)
    assert (door.refused, door.methods.count("POST"), door.methods.count("GET")) == (0, 100, 20)
    assert 5 <= shop.runs <= 8


async def test_a_server_whose_clock_is_fast(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop, skew=1.0)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, qps=0, clock=timers) as client,
    ):
        for _ in range(20):
            await client.request("POST", "/x", body=b"{}")
            await shop.advance(0.4)
    assert door.methods == ["POST"] * 20
    assert door.refused > 0


async def test_a_hundred_requests_ask_the_plugin_once(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, qps=0, clock=timers) as client,
    ):
        await shop.advance(10)
        await asyncio.gather(*(client.request("GET", "/x") for _ in range(100)))
        assert (shop.runs, door.refused) == (2, 0)
        door.skew = 1.0  # from now on the server refuses what is still good here
        await shop.advance(1.0)
        await asyncio.gather(*(client.request("GET", "/x") for _ in range(100)))
        assert shop.runs == 3
    assert 1 <= door.refused <= 100


async def test_a_stream_is_opened_again_with_new_credentials(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop, skew=1.9)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, qps=0, clock=timers) as client,
    ):
        await shop.advance(0.5)
        async with client.stream("/w", inactivity=60) as lines:
            assert [line async for line in lines] == [b'{"a":1}']
    assert (door.refused, shop.runs) == (1, 2)


async def test_refused_twice_is_told(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop, skew=100.0)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, clock=timers) as client,
    ):
        await shop.advance(0.1)  # or the second token is the first one
        with pytest.raises(ApiError, match="401 Unauthorized: Unauthorized"):
            await client.request("GET", "/x")
    assert (door.refused, shop.runs) == (2, 2)


async def test_the_same_token_again_is_not_tried_again(shop: TokenShop, timers: VirtualTimers) -> None:
    door = Door(shop, skew=100.0)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, clock=timers) as client,
    ):
        with pytest.raises(ApiError):
            await client.request("GET", "/x")
    assert (door.refused, shop.runs) == (1, 2)


async def test_a_plugin_that_fails_for_a_while(
    shop: TokenShop, timers: VirtualTimers, caplog: pytest.LogCaptureFixture
) -> None:
    door = Door(shop)
    async with (
        serving(door.answer) as cluster,
        Client(replace(cluster, user=User(issuer=shop.plugin())), timers, qps=0, clock=timers) as client,
    ):
        shop.break_()
        await shop.advance(1.7)  # time to renew, and the old one is still good
        for _ in range(3):
            await client.request("POST", "/x", body=b"{}")
        assert door.refused == 0
        await shop.advance(1.0)
        for _ in range(3):
            with pytest.raises(ApiError, match=r"401 .*exit code 1: no way to the identity provider"):
                await client.request("POST", "/x", body=b"{}")
        shop.mend()
        await client.request("POST", "/x", body=b"{}")
    problems = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.name for record in problems] == ["ksp.kube.auth.credentials"]  # told once
    assert "no way to the identity provider" in problems[0].getMessage()


async def test_a_plugin_that_fails_at_the_start(shop: TokenShop, timers: VirtualTimers) -> None:
    user = User(issuer=shop.plugin())
    shop.break_()
    async with serving(Door(shop).answer) as cluster:
        with pytest.raises(ConfigError, match="the plugin failed with exit code 1: no way to the identity provider"):
            async with Client(replace(cluster, user=user), timers, clock=timers):
                pass


# --- issuers in general ----------------------------------------------------------------------------------------------


class Slow:
    """Issues a token for each `put`, when it comes."""

    name = "slow"

    def __init__(self, *issued: Issued) -> None:
        self.answers: asyncio.Queue[Issued | ConfigError] = asyncio.Queue()
        self.asked = 0
        for one in issued:
            self.answers.put_nowait(one)

    async def issue(self) -> Issued:
        self.asked += 1
        answer = await self.answers.get()
        if isinstance(answer, ConfigError):
            raise answer
        return answer


async def token_of(credentials: Credentials) -> str:
    return dict((await credentials.current()).headers)["Authorization"].removeprefix("Bearer ")


async def test_nobody_waits_while_the_old_token_is_good(timers: VirtualTimers) -> None:
    issuer = Slow(Issued("one", expires=FIRST + 10))
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    await timers.advance(7.9)
    assert (await token_of(credentials), issuer.asked) == ("one", 1)
    await timers.advance(0.1)  # a fifth is left
    assert await token_of(credentials) == "one"
    await settle()
    assert issuer.asked == 2
    issuer.answers.put_nowait(Issued("two", expires=FIRST + 20))
    await settle()
    assert await token_of(credentials) == "two"
    await credentials.close()


async def test_who_stops_waiting_does_not_stop_the_others(timers: VirtualTimers) -> None:
    issuer = Slow(Issued("one", expires=FIRST + 10))
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    await timers.advance(10)
    impatient, patient = (asyncio.create_task(token_of(credentials)) for _ in range(2))
    await settle()
    impatient.cancel()
    await settle()
    issuer.answers.put_nowait(Issued("two"))
    async with asyncio.timeout(5):
        assert await patient == "two"
    assert issuer.asked == 2
    await credentials.close()


async def test_failing_renewals_are_spaced(timers: VirtualTimers) -> None:
    issuer = Slow(Issued("one", expires=FIRST + 10))
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    await timers.advance(11)
    for _ in range(600):
        if issuer.answers.empty():
            issuer.answers.put_nowait(ConfigError("down"))
        assert await token_of(credentials) == "one"
        await timers.advance(0.1)
    assert 5 <= issuer.asked <= 8  # at 0, 1, 3, 7, 15, 31 seconds
    assert credentials.problem == "down"
    await credentials.close()


async def test_tokens_that_have_expired_when_they_come(timers: VirtualTimers) -> None:
    issuer = Slow(*[Issued(f"t{number}", expires=FIRST - 5) for number in range(100)])
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    for _ in range(30):
        await token_of(credentials)
        await timers.advance(0.1)
    assert issuer.asked <= 4
    await credentials.close()


async def test_long_lived_tokens_are_renewed_a_minute_early(timers: VirtualTimers) -> None:
    issuer = Slow(Issued("one", expires=FIRST + 86400), Issued("two", expires=FIRST + 2 * 86400))
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    await timers.advance(86400 - 61)
    assert await token_of(credentials) == "one"
    await settle()
    assert issuer.asked == 1
    await timers.advance(1)
    await token_of(credentials)
    await settle()
    assert await token_of(credentials) == "two"
    await credentials.close()


async def test_a_renewal_under_way_ends_with_the_client(timers: VirtualTimers) -> None:
    issuer = Slow(Issued("one", expires=FIRST + 10))
    credentials = Credentials(User(issuer=issuer), None, timers, timers)
    await credentials.start()
    await timers.advance(9)
    await token_of(credentials)
    await settle()
    await credentials.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_certificate_of_no_use_leaves_the_old_one(tmp_path: Path, timers: VirtualTimers) -> None:
    authority = Authority()
    path = tmp_path / "ca.crt"
    path.write_bytes(authority.pem)
    good = Issued(None, KeyPair(*authority.client("a"), "a"))
    bad = Issued(None, KeyPair(authority.client("a")[0], authority.client("b")[1], "b"))
    credentials = Credentials(User(issuer=Slow(good, bad)), Trust(Pem("ca", path)), timers, timers)
    await credentials.start()
    before = await credentials.current()
    assert not await credentials.refused(before)
    assert await credentials.current() is before
    assert "the key does not belong to the certificate" in (credentials.problem or "")
    path.write_bytes(Authority().pem)  # what follows from the files still does
    await timers.advance(60)
    assert (await credentials.current()).tls is not before.tls


# --- files -----------------------------------------------------------------------------------------------------------


async def test_a_token_file_is_read_again_every_minute(tmp_path: Path, timers: VirtualTimers) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = Credentials(User(token_file=path), None, timers, timers)
    await credentials.start()
    assert await token_of(credentials) == "one"
    path.write_text("two\r\n")
    await timers.advance(59)
    assert await token_of(credentials) == "one"
    await timers.advance(1)
    assert await token_of(credentials) == "two"


async def test_a_token_file_is_read_again_when_the_token_is_refused(tmp_path: Path, timers: VirtualTimers) -> None:
    path = tmp_path / "token"
    path.write_text("one")

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        good = request.headers["Authorization"] == "Bearer two"
        return web.Response(status=200 if good else 401, text="x")

    async with serving(answer) as cluster, Client(replace(cluster, user=User(token_file=path)), timers) as client:
        with pytest.raises(ApiError, match="401"):
            await client.request("GET", "/x")
        path.write_text("two")
        assert (await client.request("POST", "/x")).status == 200


@pytest.mark.parametrize("damage", ["gone", "empty", "binary"])
async def test_a_token_file_that_is_damaged_later(
    tmp_path: Path, timers: VirtualTimers, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = Credentials(User(token_file=path), None, timers, timers)
    await credentials.start()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else b"\xff")
    for _ in range(3):
        await timers.advance(60)
        assert await token_of(credentials) == "one"
    assert str(path) in (credentials.problem or "")
    assert len(caplog.records) == 1
    path.write_text("two")
    await timers.advance(60)
    assert await token_of(credentials) == "two"
    assert credentials.problem is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff", "something else"),
        (b"a b", "one word"),
    ],
)
async def test_a_token_file_of_no_use(
    tmp_path: Path, timers: VirtualTimers, content: bytes | None, message: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"{path}.*{message}"):
        await Credentials(User(token_file=path), None, timers, timers).start()


async def who(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    subject = request.transport.get_extra_info("peercert")["subject"]
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(dict(pair for part in subject for pair in part)["commonName"].encode() + b"\n")
    if request.path == "/w":
        await asyncio.Event().wait()
    return response


async def test_certificates_that_change_on_disk(tmp_path: Path, timers: VirtualTimers) -> None:
    ours, theirs = Authority(), Authority()
    certificate, key = tmp_path / "crt", tmp_path / "key"
    user = User(certificate=Pem("crt", certificate), key=Pem("key", key))

    def write(name: str) -> None:
        for path, content in zip((certificate, key), theirs.client(name), strict=True):
            path.write_bytes(content)

    write("one")
    async with (
        serving(who, ours.server(clients=theirs)) as cluster,
        Client(replace(cluster, trust=ours.trust, user=user), timers) as client,
    ):
        assert (await client.request("GET", "/x")).body == b"one\n"
        async with client.stream("/w", inactivity=1e9) as lines:
            assert await anext(lines) == b"one"
            certificate.write_bytes(theirs.client("half")[0])  # the key follows later
            await timers.advance(60)
            assert (await client.request("GET", "/x")).body == b"one\n"
            write("two")
            await timers.advance(60)
            assert (await client.request("GET", "/x")).body == b"two\n"
            [old] = client._retired
            assert not old.closed  # the stream goes on
        assert old.closed


async def test_an_authority_that_changes_on_disk(tmp_path: Path, timers: VirtualTimers) -> None:
    old, new = Authority(), Authority()
    path = tmp_path / "ca.crt"
    path.write_bytes(old.pem)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="ok")

    async with (
        serving(answer, new.server()) as cluster,
        Client(replace(cluster, trust=Trust(Pem("ca", path))), timers) as client,
    ):
        path.write_bytes(new.pem)
        assert (await client.request("POST", "/x")).body == b"ok"


# --- what nobody is to read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 401, 500])
async def test_no_log_and_no_error_shows_a_token(
    tmp_path: Path, timers: VirtualTimers, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """At the most talkative level, of ksp and of its libraries, with a file that is damaged later."""
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "token"
    file.write_text("s3cr3t")

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer s3cr3t"
        return web.Response(status=status)

    told = ""
    async with (
        serving(answer) as cluster,
        Client(replace(cluster, user=User(token_file=file)), timers, clock=timers) as client,
    ):
        for content in ("s3cr3t", "s3cr3t s3cr3t"):
            file.write_text(content)
            await timers.advance(61)
            try:
                await client.request("GET", "/x", retry=False)
            except ApiError as error:
                told += f"{error!r} {error}"
    assert "credentials could not be loaded again" in caplog.text
    assert (status == 200) == (told == "")
    assert "s3cr3t" not in caplog.text + told
