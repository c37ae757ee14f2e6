"""The official Python client of MCP against the MCP endpoint, in each of its modes."""

import asyncio

import pytest
from dealer import admin, server
from mcp.client import Client

TOOLS = [
    "aap_dealer_information",
    "aap_inventory_facets",
    "aap_inventory_search",
    "aap_inventory_vehicle",
    "aap_lead_submit",
]
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


def endpoint(name):
    return server(name)["url"].removesuffix("/a2a") + "/mcp"


async def shop(mode):
    """Lists the tools, finds a vehicle, and asks for one that is not there."""
    async with Client(endpoint("pinned"), mode=mode) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("aap_inventory_search", {"type": "inventory.search.request"})
        unknown = {"type": "inventory.vehicle.request", "vin": admin("pinned", "/fixtures")["unknown_vin"]}
        refused = await client.call_tool("aap_inventory_vehicle", unknown)
        return client.protocol_version, tools, found, refused


@pytest.mark.parametrize("mode", VERSIONS)
def test_each_mode_finds_the_tools_and_reads_results_and_errors(mode):
    version, tools, found, refused = asyncio.run(shop(mode))
    assert version == VERSIONS[mode]
    assert [tool.name for tool in tools] == TOOLS
    assert not found.is_error
    assert found.structured_content["type"] == "inventory.search.response"
    assert found.structured_content["data"]["vehicles"]
    assert refused.is_error
    assert refused.structured_content["code"] == "VEHICLE_NOT_FOUND"
