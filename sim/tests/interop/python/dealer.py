"""What the Python tests share: the servers that run.sh started, the table of cases, and a buyer on the SDK."""

import json
import os
import re
import urllib.request
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers import get_data_parts, new_data_part, new_text_part
from a2a.types import Message, Role, SendMessageConfiguration, SendMessageRequest

CASES = json.loads(Path(os.environ["INTEROP_CASES"]).read_text())
AAP_ERROR = "https://autoagentprotocol.org/extensions/aap/error"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def server(name):
    """The first output line of a server: its `url`, `card` and `admin`."""
    return json.loads((Path(os.environ["INTEROP_SERVERS"]) / f"{name}.json").read_text())


def admin(name, path):
    """A resource of a server's admin endpoint."""
    with urllib.request.urlopen(server(name)["admin"] + path, timeout=10) as reply:
        return json.load(reply)


def media_type(skill, way):
    """The AAP media type of a skill's `request` or `response`."""
    return f"application/vnd.autoagent.{CASES['stems'][skill]}-{way}+json"


def values(name):
    """What `${...}` in the cases stands for: the server's fixtures, times, a word that no other test uses."""
    now = datetime.now(timezone.utc).replace(microsecond=0)
    times = {"minute_ago": now - timedelta(minutes=1), "day_ago": now - timedelta(days=1)}
    stamps = {word: time.isoformat().replace("+00:00", "Z") for word, time in times.items()}
    return {**admin(name, "/fixtures"), **stamps, "unique": uuid4().hex}


def fill(shape, known):
    """`shape` with every `${word}` replaced."""
    text = re.sub(r"\$\{(\w+)\}", lambda match: known[match[1]], json.dumps(shape))
    return json.loads(text)


def payload(skill, case, known):
    """The AAP request of a case; a lead is the table's own lead with members replaced, or (null) left out."""
    body = case["payload"] if "payload" in case else {**CASES["lead"], **case["lead"]}
    body = {member: value for member, value in body.items() if value is not None}
    return fill({"type": f"{skill}.request", **body}, known)


class Buyer:
    """A buyer agent on the SDK's client; `wire` is the last JSON-RPC reply as the httpx hook saw it."""

    def __init__(self, http, card, version, extensions):
        """`version` "sdk" leaves the SDK's own A2A-Version, None omits it; `extensions` None activates the card's."""
        self.http, self.card, self.wire, self.headers = http, card, None, None
        self.client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        http.event_hooks["response"].append(self._look)
        if version is None:
            del http.headers["A2A-Version"]
        elif version != "sdk":
            http.headers["A2A-Version"] = version
        uris = [extension.uri for extension in card.capabilities.extensions if extension.required]
        activate = with_a2a_extensions(uris if extensions is None else extensions)
        client_key = {"X-Sim-Client": uuid4().hex}
        self.context = ClientCallContext(
            service_parameters=ServiceParametersFactory.create_from(client_key, [activate])
        )

    async def _look(self, response):
        await response.aread()
        self.headers = response.headers
        try:
            self.wire = response.json()
        except (ValueError, RecursionError):
            # A fault may have left no JSON.
            self.wire = None

    async def send(self, skill, body, *, context_id="", message=None, media=None, modes=None):
        """Sends one AAP request through `Client.send_message`; returns the reply Message."""
        message = message or {}
        data = new_data_part(body, media or media_type(skill, "request"))
        parts = {"none": [], "text first": [new_text_part("Hello"), data]}.get(message.get("parts"), [data])
        request = SendMessageRequest(
            message=Message(
                message_id=message.get("messageId", uuid4().hex),
                context_id=context_id,
                task_id=message.get("taskId", ""),
                role=message.get("role", Role.ROLE_USER),
                parts=parts,
            ),
            configuration=SendMessageConfiguration(accepted_output_modes=modes or [media_type(skill, "response")]),
        )
        replies = [reply async for reply in self.client.send_message(request, context=self.context)]
        assert [reply.WhichOneof("payload") for reply in replies] == ["message"]
        reply = replies[0].message
        assert reply.role == Role.ROLE_AGENT
        assert reply.context_id, "every reply has a contextId"
        assert reply.message_id not in ("", request.message.message_id)
        return reply

    async def ask(self, skill, body, **options):
        """As `send`, and returns the contextId and the AAP response object of the first part."""
        reply = await self.send(skill, body, **options)
        assert reply.parts[0].media_type == media_type(skill, "response")
        answer = get_data_parts(reply.parts)[0]
        assert answer["type"] == f"{skill}.response"
        return reply.context_id, answer


@asynccontextmanager
async def buyer(name, *, version="sdk", extensions=None, claims=()):
    """A buyer of the server `name`; `claims` are capabilities to set on the card that the SDK then believes."""
    async with httpx.AsyncClient(timeout=10, event_hooks={"response": []}) as http:
        base = server(name)["card"].removesuffix("/.well-known/agent-card.json")
        card = await A2ACardResolver(http, base).get_agent_card()
        for capability in claims:
            setattr(card.capabilities, capability, True)
        yield Buyer(http, card, version, extensions)


def at(document, pointer):
    """The value at a JSON Pointer (no escapes are needed here)."""
    for step in pointer.split("/")[1:]:
        document = document[int(step) if isinstance(document, list) else step]
    return document
