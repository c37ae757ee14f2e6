"""The SDK's client over TLS and HTTP/2, with certificates and tokens; and curl and openssl, which see what lies below."""

import asyncio
import json
import os
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.client.errors import AgentCardResolutionError
from dealer import Buyer, server, values, payload

PKI = Path(os.environ["INTEROP_PKI"])
SEARCH = {"payload": {"filters": {}, "pagination": {"limit": 3}}}


def context(own=None):
    """Believes the interop authority; shows a certificate of its own if one is named."""
    made = ssl.create_default_context(cafile=PKI / "ca.pem")
    if own:
        made.load_cert_chain(PKI / f"{own}.pem", PKI / f"{own}.key")
    return made


async def shop(name, *, http2, verify=True, headers=None, secure=True):
    """A card and a search through the SDK; the versions of HTTP that were spoken, and how many vehicles came."""
    spoken = []

    async def look(response):
        spoken.append(response.http_version)

    hooks = {"response": [look]}
    # Without TLS nothing can be agreed upon: HTTP/2 is known to be spoken.
    options = {"http1": not http2, "http2": http2, "timeout": 10, "event_hooks": hooks, "headers": headers}
    async with httpx.AsyncClient(verify=verify, **options) as http:
        base = server(name)["card"].removesuffix("/.well-known/agent-card.json")
        card = await A2ACardResolver(http, base).get_agent_card()
        buyer = Buyer(http, card, "sdk", None)
        _, answer = await buyer.ask("inventory.search", payload("inventory.search", SEARCH, values(name)))
        return set(spoken), len(answer["data"]["vehicles"]), card


@pytest.mark.parametrize("http2", [False, True])
def test_the_sdk_speaks_both_versions_under_tls_and_without(http2):
    version = "HTTP/2" if http2 else "HTTP/1.1"
    for name, verify in (("secure", context()), ("pinned", True)):
        spoken, vehicles, card = asyncio.run(shop(name, http2=http2, verify=verify))
        assert (spoken, vehicles) == ({version}, 3)
        assert card.supported_interfaces[0].url == server(name)["url"]


def test_mutual_tls_serves_the_buyer_and_refuses_the_stranger():
    for http2 in (False, True):
        _, vehicles, card = asyncio.run(shop("mutual", http2=http2, verify=context("buyer")))
        assert vehicles == 3
        assert list(card.security_schemes) == ["mtls"]
        for own in ("stranger", None):
            with pytest.raises((AgentCardResolutionError, ssl.SSLError)):
                asyncio.run(shop("mutual", http2=http2, verify=context(own)))


def test_the_card_says_what_is_asked_for_and_the_token_opens():
    token = {"Authorization": "Bearer interop-token"}
    _, vehicles, card = asyncio.run(shop("asking", http2=False, headers=token))
    assert vehicles == 3
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert [list(one.schemes) for one in card.security_requirements] == [["bearer"]]
    with pytest.raises(Exception, match="401"):
        asyncio.run(shop("asking", http2=False))


def curl(*arguments):
    """What curl prints and its exit code."""
    done = subprocess.run(["curl", "-s", "--max-time", "10", *arguments], capture_output=True, text=True)
    return done.stdout, done.returncode


def test_curl_speaks_each_way():
    plain, secure, mutual = (server(name)["card"] for name in ("pinned", "secure", "mutual"))
    told = ["-o", "/dev/null", "-w", "%{http_code} %{http_version}"]
    ca = ["--cacert", str(PKI / "ca.pem")]

    def own(name):
        return ["--cert", str(PKI / f"{name}.pem"), "--key", str(PKI / f"{name}.key")]

    for arguments, expected in (
        ([plain], "200 1.1"),
        (["--http2", plain], "200 1.1"),
        (["--http2-prior-knowledge", plain], "200 2"),
        (["--http1.1", *ca, secure], "200 1.1"),
        (["--http2", *ca, secure], "200 2"),
        (["--http2", "--tls-max", "1.2", *ca, secure], "200 2"),
        (["--http2", *ca, *own("buyer"), mutual], "200 2"),
    ):
        assert curl(*told, *arguments) == (expected, 0), arguments
    # 60: the dealer is not believed; 35, 55 and 56: it refuses the handshake, or says so behind it (TLS 1.3); 16: in HTTP/2.
    for arguments, codes in (
        ([secure], (60,)),
        ([*ca, *own("stranger"), mutual], (35, 55, 56, 16)),
        ([*ca, mutual], (35, 55, 56, 16)),
        (["--tls-max", "1.1", *ca, secure], (35,)),
        ([plain.replace("http:", "https:")], (35,)),
    ):
        out, code = curl(*arguments)
        assert (out, code in codes) == ("", True), (arguments, code)
    card, _ = curl("--http2", *ca, secure)
    assert json.loads(card)["supportedInterfaces"][0]["url"] == server("secure")["url"]


def test_a_client_may_not_renegotiate():
    """CVE-2011-1473: each renegotiation costs the server more than the client."""
    authority = server("secure")["card"].split("/")[2]
    done = subprocess.run(
        ["openssl", "s_client", "-connect", authority, "-tls1_2", "-CAfile", str(PKI / "ca.pem")],
        input="R\n" * 20,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert "RENEGOTIATING" in done.stdout + done.stderr
    assert "no renegotiation" in done.stderr, done.stderr
    assert curl("--cacert", str(PKI / "ca.pem"), server("secure")["card"])[1] == 0
