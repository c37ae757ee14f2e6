"""Discovery, the five skills and one conversation, through the SDK's own resolver and client."""

import asyncio

import pytest
from dealer import CASES, admin, at, buyer, media_type, payload, server, values

KINDS = {"string": str, "number": (int, float)}
DOORS = pytest.mark.parametrize("door", CASES["doors"], ids=lambda door: door["name"])


def open_door(door):
    return buyer(door["server"], version=door.get("version", "sdk"), extensions=door.get("extensions"))


@pytest.mark.parametrize("name,uri", CASES["contracts"].items())
def test_card(name, uri):
    async def run():
        async with buyer(name) as shop:
            return shop.card

    card = asyncio.run(run())
    assert card.name and card.description and card.version
    assert [(face.protocol_binding, face.protocol_version) for face in card.supported_interfaces] == [("JSONRPC", "1.0")]
    assert card.supported_interfaces[0].url == server(name)["url"]
    assert not card.capabilities.streaming
    assert not card.capabilities.push_notifications
    assert not card.capabilities.extended_agent_card
    assert [(entry.uri, entry.required) for entry in card.capabilities.extensions] == [(uri, True)]
    assert card.capabilities.extensions[0].params.fields
    skills = CASES["stems"]
    assert [skill.id for skill in card.skills] == list(skills)
    assert all(skill.name and skill.description and skill.tags for skill in card.skills)
    assert list(card.default_input_modes) == [media_type(skill, "request") for skill in skills]
    assert list(card.default_output_modes) == [media_type(skill, "response") for skill in skills]


@DOORS
@pytest.mark.parametrize("case", CASES["skills"], ids=lambda case: case["skill"])
def test_skill(case, door):
    async def run():
        async with open_door(door) as shop:
            body = payload(case["skill"], case, values(door["server"]))
            _, answer = await shop.ask(case["skill"], body)
            return answer, shop.headers

    answer, headers = asyncio.run(run())
    for pointer, kind in case["reads"].items():
        assert isinstance(at(answer["data"], pointer), KINDS[kind]), pointer
    assert headers["A2A-Extensions"] == CASES["contracts"][door["server"]]


@DOORS
def test_conversation(door):
    known = values(door["server"])

    async def run():
        async with open_door(door) as shop:
            search = {"type": "inventory.search.request", "filters": {"vin": known["available_vin"]}}
            context, found = await shop.ask("inventory.search", search)
            vin = found["data"]["vehicles"][0]["vin"]

            detail = {"type": "inventory.vehicle.request", "vin": vin}
            second, vehicle = await shop.ask("inventory.vehicle", detail, context_id=context)
            assert second == context
            assert vehicle["data"]["vin"] == vin
            # The SDK reads every number as a double; on the wire it is a plain integer (an AAP `integer`).
            assert isinstance(shop.wire["result"]["message"]["parts"][0]["data"]["data"]["year"], int)

            case = {"lead": {"vehicle_of_interest": {"vin": vin, "year": vehicle["data"]["year"]}}}
            third, lead = await shop.ask("lead.submit", payload("lead.submit", case, known), context_id=context)
            assert third == context
            assert lead["data"]["status"] == "received"

    before = admin(door["server"], "/fixtures")["lead_count"]
    asyncio.run(run())
    assert admin(door["server"], "/fixtures")["lead_count"] == before + 1
