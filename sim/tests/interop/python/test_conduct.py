"""The SDK's client as a buyer agent that the dealer judges: as it comes, and set up as AAP asks.

What the payloads hold and which contextId goes where is the application's; the same one runs on both SDKs. The reports go to
the folder that INTEROP_SHOWN names; `conduct_table.py` makes the table of them.
"""

import asyncio
import json
import os
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers import get_data_parts, new_data_part
from a2a.types import Message, Role, SendMessageConfiguration, SendMessageRequest
from dealer import admin, media_type, payload, server, values

# What is left to the application, or to a cache of its own, once the client is set up.
LEFT = {"discovery.card_fresh", "discovery.card_revalidated"}
# What setting it up is for.
SET_UP = {"envelope.a2a_extensions", "envelope.accepted_output_modes"}


async def shop(name, set_up):
    """Card, two pages, a vehicle and a lead in one conversation; and two further clients, when the card has expired."""
    async with httpx.AsyncClient(timeout=10) as http:
        resolver = A2ACardResolver(http, server(name)["card"].removesuffix("/.well-known/agent-card.json"))
        card = await resolver.get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        uris = [extension.uri for extension in card.capabilities.extensions if extension.required]
        activate = [with_a2a_extensions(uris)] if set_up else []
        context = ClientCallContext(service_parameters=ServiceParametersFactory.create(activate))
        conversation = ""

        async def ask(skill, body):
            # On a connection of its own a call may come before the end of the reply before it is on record: then two are under way.
            await asyncio.sleep(0.05)
            nonlocal conversation
            message = Message(
                message_id=uuid4().hex,
                context_id=conversation,
                role=Role.ROLE_USER,
                parts=[new_data_part({"type": f"{skill}.request", **body}, media_type(skill, "request"))],
            )
            request = SendMessageRequest(message=message)
            if set_up:
                modes = [media_type(skill, "response")]
                request.configuration.CopyFrom(SendMessageConfiguration(accepted_output_modes=modes))
            replies = [reply async for reply in client.send_message(request, context=context)]
            conversation = replies[0].message.context_id
            return get_data_parts(replies[0].message.parts)[0]["data"]

        search = {"filters": {"condition": ["used"]}, "privacy": {"anonymous": True}}
        await ask("inventory.search", {**search, "pagination": {"skip": 0, "limit": 5}})
        page = await ask("inventory.search", {**search, "pagination": {"skip": 5, "limit": 5}})
        vehicle = await ask("inventory.vehicle", {"vin": page["vehicles"][0]["vin"]})
        lead = payload("lead.submit", {"lead": {}}, values(name))
        lead |= {"vehicle_of_interest": {"vin": vehicle["vin"]}, "idempotency_key": uuid4().hex}
        lead["message"] = f"Is ${vehicle['price']:.0f} the last word?"
        assert (await ask("lead.submit", lead))["status"] == "received"

        await asyncio.sleep(1.2)
        await resolver.get_agent_card()
        await resolver.get_agent_card()


@pytest.mark.parametrize("way", ["plain", "set_up"])
def test_conduct(way):
    name = f"conduct_python_{way}"
    asyncio.run(shop(name, way == "set_up"))
    report = admin(name, "/conduct?format=json")
    [client] = report["clients"]
    assert (client["calls"], report["unknown"]) == (4, 0)
    status = {rule["id"]: rule["status"] for rule in client["rules"]}
    broken = {rule for rule, became in status.items() if became == "broken"}
    assert broken == LEFT | (set() if way == "set_up" else SET_UP), report
    with Path(os.environ["INTEROP_SHOWN"], f"{name}.json").open("w") as file:
        json.dump({"status": status, "severity": {rule["id"]: rule["severity"] for rule in client["rules"]}}, file)
