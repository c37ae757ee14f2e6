"""Every fault of three families, asked for by header and by magic value through the SDK, and what the SDK shows of it.

What is shown goes to the file that INTEROP_SHOWN names; `faults_table.py` makes the table of it.
"""

import asyncio
import json
import os
from pathlib import Path

from a2a.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.helpers import new_data_part
from a2a.types import Message, Role, SendMessageConfiguration, SendMessageRequest
from dealer import CASES, admin, buyer, fill, media_type
from faults_shown import difference, flat, said
from google.protobuf.json_format import MessageToDict

NAME = "faults_python"
FAULTS = json.loads(Path(os.environ["INTEROP_CASES"]).with_name("faults.json").read_text())
ROUTE_OF = {effect: route for route, effects in FAULTS["routes"].items() for effect in effects}


async def show(shop, skill, body, fault):
    """What the SDK shows of one call, as a flat document or a text; and what the reply says of faults."""
    fields = {"X-Sim-Client": str(fault), **({"X-Sim-Fault": fault} if fault else {})}
    uris = [CASES["contracts"]["pinned"]]
    parameters = ServiceParametersFactory.create_from(fields, [with_a2a_extensions(uris)])
    message = Message(
        message_id="m-of-request",
        context_id="ctx_of_buyer",
        role=Role.ROLE_USER,
        parts=[new_data_part(body, media_type(skill, "request"))],
    )
    configuration = SendMessageConfiguration(accepted_output_modes=[media_type(skill, "response")])
    request = SendMessageRequest(message=message, configuration=configuration)
    shop.headers = None
    try:
        context = ClientCallContext(service_parameters=parameters)
        replies = [reply async for reply in shop.client.send_message(request, context=context)]
    except Exception as error:
        data = getattr(error, "data", None)
        kept = f" (in data: {data['code']})" if isinstance(data, dict) and "code" in data else ""
        shown = f"{said(type(error).__name__, getattr(error, 'message', None) or str(error))}{kept}"
    else:
        assert len(replies) == 1
        payload = replies[0].WhichOneof("payload")
        shown = flat(MessageToDict(getattr(replies[0], payload))) if payload == "message" else f"a {payload.capitalize()}"
    return shown, (shop.headers or {}).get("X-Sim-Fault-Applied", "")


def test_every_fault():
    catalogue = admin(NAME, "/faults/catalogue")["effects"]
    effects = [effect for effect in catalogue if effect["family"] in FAULTS["families"]]
    known = {effect["name"] for effect in effects}
    assert set(ROUTE_OF) | set(FAULTS["arguments"]) | set(FAULTS["twice"]) <= known
    assert {code.lower() for code in FAULTS["codes"]} <= known
    values = admin(NAME, "/fixtures")

    def ask(shop, route, name, fault):
        skill = route.split(",")[0]
        body = {"type": f"{skill}.request", **fill(FAULTS["requests"][route], {**values, "name": name})}
        return show(shop, skill, body, fault)

    async def run():
        rows = []
        async with buyer(NAME) as shop:
            plain = {route: (await ask(shop, route, f"Plain {route}", None))[0] for route in FAULTS["requests"]}
            assert all(isinstance(shown, dict) for shown in plain.values()), plain
            for effect in effects:
                name = effect["name"]
                route = ROUTE_OF.get(name, "inventory.search")
                fault = name + FAULTS["arguments"].get(name, "")
                before = plain[route]
                if name in FAULTS["twice"]:
                    before, _ = await ask(shop, route, name, fault if name == "token_bucket" else None)
                shown, told = await ask(shop, route, name, fault)
                assert told.startswith(f"header; {name}"), f"{name} was not reached: {told!r}"
                rows.append([effect["family"], name, route, difference(before, shown, name in FAULTS["twice"])])
                magic = {"type": "inventory.vehicle.request", "stock": f"SIM:{name}"}
                _, told = await show(shop, "inventory.vehicle", magic, None)
                assert told.startswith(f"magic:SIM:{name}; {name}"), f"{name} was not reached by magic: {told!r}"
        return rows

    rows = asyncio.run(run())
    shown = {name: text for _, name, _, text in rows}
    for code in FAULTS["codes"]:
        assert code in shown[code.lower()], f"{code}: {shown[code.lower()]}"
    with Path(os.environ["INTEROP_SHOWN"], "python.json").open("w") as file:
        json.dump(rows, file)
