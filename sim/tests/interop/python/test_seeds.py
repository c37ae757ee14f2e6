"""The documents' own request bodies, raw over HTTP, and the reply shapes the documents show beside them.

The documents are "JSON-RPC 2.0 binding" (contract 2.0, unreleased, with its draft URI) and "A2A profile" (contract 3.0).
Bodies are as printed, but for the VINs, which come from the server's fixtures: the servers' clock stands a minute after
the documents' own dates.
"""

import http.client
import json
from urllib.parse import urlsplit

import pytest
from dealer import CASES, admin, fill, server

HEADERS = {"A2A-Version": "1.0"}
# Members whose value, too, is fixed by the document.
EQUAL = {"jsonrpc", "id", "role", "type", "mediaType", "@type", "code", "reason", "domain"}


def post(name, body, headers):
    """The status and the JSON of a reply to `body`."""
    url = urlsplit(server(name)["url"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
    connection.request("POST", url.path, json.dumps(body), {"Content-Type": "application/json", **headers})
    reply = connection.getresponse()
    found = reply.status, json.loads(reply.read())
    connection.close()
    return found


def aap_headers(name):
    contract = {"seed2": "contract2", "seed3": "pinned"}[name]
    return {**HEADERS, "A2A-Extensions": CASES["contracts"][contract]}


def envelope(number, message_id, data, stem):
    """The request envelope; it is printed the same around each of the skills."""
    return {
        "jsonrpc": "2.0",
        "id": f"req-{number}",
        "method": "SendMessage",
        "params": {
            "message": {
                "messageId": message_id,
                "role": "ROLE_USER",
                "parts": [{"data": data, "mediaType": f"application/vnd.autoagent.{stem}-request+json"}],
            },
            "configuration": {"acceptedOutputModes": [f"application/vnd.autoagent.{stem}-response+json"]},
        },
    }


def answer(number, data, stem):
    """The reply envelope, printed the same around each of the skills."""
    return {
        "jsonrpc": "2.0",
        "id": f"req-{number}",
        "result": {
            "message": {
                "messageId": "01HZ9G5P2KA8RT9WMS3B4C5D6E",
                "contextId": "ctx_example_001",
                "role": "ROLE_AGENT",
                "parts": [{"data": data, "mediaType": f"application/vnd.autoagent.{stem}-response+json"}],
            }
        },
    }


LISTED = {
    "dealer_id": "dealer_demo_toyota",
    "vin": "1HGCY2F57RA000001",
    "stock": "T12345",
    "year": 2022,
    "make": "Honda",
    "model": "Civic",
    "trim": "EX",
    "condition": "cpo",
    "list_price": 24990,
    "price": 26780,
    "fees": [{"name": "Documentation fee", "amount": 500}, {"name": "Pre-installed theft protection", "amount": 1290}],
    "status": "available",
    "rooftop": "Demo Toyota San Francisco",
    "inventory_date": "2026-04-12",
    "updated_at": "2026-04-30T10:15:00Z",
}

# name, request, reply shown, members shown that the contract leaves to the dealer (no breakdown of fees, or an empty one)
EXCHANGES = [
    (
        "dealer.information",
        envelope(1, "01HZ9G5N8D1Y4M6SP9C4XKVW3Q", {"type": "dealer.information.request"}, "dealer-information"),
        answer(
            1,
            {
                "type": "dealer.information.response",
                "data": {
                    "name": "Demo Auto Group",
                    "rooftops": [
                        {
                            "name": "Demo Toyota San Francisco",
                            "legal_name": "Demo Toyota of San Francisco, LLC",
                            "website": "https://demo-toyota.example.com",
                            "geo": {"latitude": 37.77, "longitude": -122.41},
                            "emails": [{"name": "Sales", "value": "sales@demo-toyota.example.com"}],
                            "phones": [{"name": "Sales", "value": "+14155550100"}],
                            "address": {
                                "country": "US",
                                "state": "CA",
                                "city": "San Francisco",
                                "address_line_1": "100 Market St",
                                "zip": "94105",
                            },
                            "timezone": "America/Los_Angeles",
                            "capabilities": ["sales", "service", "financing", "trade_in"],
                        }
                    ],
                },
            },
            "dealer-information",
        ),
        set(),
    ),
    (
        "inventory.facets",
        envelope(
            2,
            "01HZ9H6P9E2Z5N7TQ0D5YMWX4R",
            {"type": "inventory.facets.request", "filters": {"condition": ["used"]}},
            "inventory-facets",
        ),
        answer(
            2,
            {
                "type": "inventory.facets.response",
                "data": {
                    "makes": [{"value": "Honda", "count": 12}, {"value": "Toyota", "count": 27}],
                    "conditions": [{"value": "used", "count": 39}],
                    "year_range": {"min": 2015, "max": 2024},
                    "price_range": {"min": 9990, "max": 38990},
                },
            },
            "inventory-facets",
        ),
        set(),
    ),
    (
        "inventory.search",
        envelope(
            3,
            "01HZ9F4M7C0X3K5RN8B3WJTW2P",
            {
                "type": "inventory.search.request",
                "filters": {"make": ["Honda"], "condition": ["used", "cpo"], "year_min": 2020, "price_max": 30000},
                "pagination": {"skip": 0, "limit": 20},
                "sort": {"field": "price", "order": "asc"},
                "privacy": {"anonymous": True},
            },
            "inventory-search",
        ),
        answer(
            3,
            {"type": "inventory.search.response", "data": {"total": 1, "skip": 0, "limit": 20, "vehicles": [LISTED]}},
            "inventory-search",
        ),
        {"fees", "inventory_date"},
    ),
    (
        "inventory.vehicle",
        envelope(
            4,
            "01HZ9J7Q0F3A6P8VR1E6ZNXY5S",
            {"type": "inventory.vehicle.request", "vin": "${vin_with_fees}"},
            "vehicle-detail",
        ),
        answer(
            4,
            {
                "type": "inventory.vehicle.response",
                "data": {
                    **LISTED,
                    "msrp": 26500,
                    "city_mpg": 31,
                    "highway_mpg": 40,
                    "features": ["Adaptive Cruise Control", "Apple CarPlay", "Lane Keep Assist"],
                    "vdp_url": "https://demo-toyota.example.com/inventory/T12345",
                },
            },
            "vehicle-detail",
        ),
        set(),
    ),
    (
        "lead.submit",
        envelope(
            5,
            "01HZ9K8R1G4B7Q9WS2F7APYZ6T",
            {
                "type": "lead.submit.request",
                "customer": {
                    "first_name": "Anna",
                    "last_name": "Lee",
                    "email": "anna@example.com",
                    "phone": "+14155550123",
                    "preferred_contact": "phone",
                    "address": {
                        "address_line_1": "200 Folsom St",
                        "city": "San Francisco",
                        "state": "CA",
                        "zip": "94105",
                    },
                },
                "consent": {
                    "granted_at": "2026-04-30T10:16:00Z",
                    "allowed_channels": ["email", "phone"],
                    "consent_text": "I agree to share my contact info with Demo Toyota about VIN ${available_vin}, my Saturday "
                    "test drive, and the trade-in of my 2014 Toyota Corolla.",
                    "scope": ["lead_submission"],
                },
                "vehicle_of_interest": {
                    "vin": "${available_vin}",
                    "year": 2022,
                    "make": "Honda",
                    "model": "Civic",
                    "trim": "EX",
                    "condition": "cpo",
                },
                "trade_in": {
                    "year": 2014,
                    "make": "Toyota",
                    "model": "Corolla",
                    "condition": "good",
                    "mileage": 96000,
                },
                "appointment": {
                    "appointment_type": "test_drive",
                    "appointment_at": "2026-05-02T17:00:00Z",
                    "duration_minutes": 60,
                },
                "message": "Interested in this Civic; is it still available? Please appraise my Corolla at the same visit.",
                "source_agent": {
                    "name": "chatgpt-shopping",
                    "url": "https://chatgpt.com",
                    "agent_card_url": "https://chatgpt.com/.well-known/agent-card.json",
                },
                "submitted_at": "2026-04-30T10:16:05Z",
            },
            "lead-submit",
        ),
        answer(
            5,
            {
                "type": "lead.submit.response",
                "data": {
                    "lead_id": "lead_2026_04_30_anna_001",
                    "status": "received",
                    "appointment": {
                        "appointment_id": "appt_2026_04_30_anna_001",
                        "status": "confirmed",
                        "confirmed_at": "2026-05-02T17:00:00Z",
                    },
                    "dealer": {"name": "Demo Toyota", "phone": "+14155550100"},
                },
                "message": "Confirmed for Saturday at 10am Pacific. Please bring a valid driver's license. Your Corolla is "
                "queued for in-person appraisal at the same visit.",
            },
            "lead-submit",
        ),
        set(),
    ),
    (
        # The document prints this reply alone; the request is the one its two faults describe.
        "two validation errors",
        envelope(
            3,
            "01HZ9F4M7C0X3K5RN8B3WJTW2P",
            {"type": "inventory.search.request", "filters": {"year_min": "2020", "condition": ["mint"]}},
            "inventory-search",
        ),
        {
            "jsonrpc": "2.0",
            "id": "req-3",
            "error": {
                "code": -32602,
                "message": "Invalid params: 2 validation errors",
                "data": [
                    {
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": "SCHEMA_VALIDATION_FAILED",
                        "domain": "autoagentprotocol.org",
                        "metadata": {
                            "code": "SCHEMA_VALIDATION_FAILED",
                            "error_id": "err_01HZ9EXAMPLE",
                            "retryable": "false",
                            "created_at": "2026-04-30T10:15:30Z",
                        },
                    },
                    {
                        "@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": [
                            {"field": "/filters/year_min", "description": "type: must be integer"},
                            {"field": "/filters/condition/0", "description": "enum: must be one of: new, used, cpo"},
                        ],
                    },
                    {
                        "@type": "https://autoagentprotocol.org/extensions/aap/error",
                        "type": "aap.error",
                        "error_id": "err_01HZ9EXAMPLE",
                        "code": "SCHEMA_VALIDATION_FAILED",
                        "message": "Request failed validation with 2 errors; see details.errors[].",
                        "retryable": False,
                        "details": {
                            "errors": [
                                {"instanceLocation": "/filters/year_min", "keyword": "type", "error": "must be integer"},
                                {
                                    "instanceLocation": "/filters/condition/0",
                                    "keyword": "enum",
                                    "error": "must be one of: new, used, cpo",
                                },
                            ]
                        },
                        "created_at": "2026-04-30T10:15:30Z",
                    },
                ],
            },
        },
        set(),
    ),
]

# The one body of the A2A profile, in the envelope of the other document.
PROFILE_PART = {
    "data": {
        "type": "inventory.search.request",
        "filters": {"make": ["Honda"], "status": ["available"]},
        "pagination": {"limit": 20},
    },
    "mediaType": "application/vnd.autoagent.inventory-search-request+json",
}
PROFILE = envelope(3, "01HZ9F4M7C0X3K5RN8B3WJTW2P", PROFILE_PART["data"], "inventory-search")


def differences(shown, got, optional, where=""):
    """Every place where `got` lacks a member that `shown` has, or has a value of another JSON type.

    Members beyond those shown are no difference (a document shows some of them), except in the envelope.
    A list's items are held to the shown items in turn, the last of them standing for all that follow.
    """
    if isinstance(shown, dict) and isinstance(got, dict):
        for member, value in shown.items():
            place = f"{where}/{member}"
            if member not in got:
                if member not in optional:
                    yield f"{place} is missing"
            elif member in EQUAL and got[member] != value:
                yield f"{place} is {got[member]!r}, not {value!r}"
            elif got[member] == [] and member not in optional:
                yield f"{place} is empty"
            else:
                yield from differences(value, got[member], optional, place)
    elif isinstance(shown, list) and isinstance(got, list):
        for index, item in enumerate(got):
            yield from differences(shown[min(index, len(shown) - 1)], item, optional, f"{where}/{index}")
    elif type(shown) is not type(got):
        yield f"{where} is {got!r}, not of the type of {shown!r}"


def check_envelope(reply):
    """The envelope has no member beyond those the documents name: no `kind`, no null beside a result."""
    assert set(reply) == {"jsonrpc", "id", "result"}
    assert set(reply["result"]) == {"message"}
    message = reply["result"]["message"]
    assert set(message) == {"messageId", "contextId", "role", "parts"}
    assert message["contextId"] and message["messageId"]
    (part,) = message["parts"]
    assert set(part) == {"data", "mediaType"}
    assert set(part["data"]) <= {"type", "data", "message"}


@pytest.mark.parametrize("request_body,shown,optional", [row[1:] for row in EXCHANGES], ids=[row[0] for row in EXCHANGES])
def test_binding_document(request_body, shown, optional):
    body = fill(request_body, admin("seed2", "/fixtures"))
    status, reply = post("seed2", body, aap_headers("seed2"))
    assert status == 200
    assert list(differences(shown, reply, optional)) == []
    if "result" in shown:
        check_envelope(reply)
        assert reply["result"]["message"]["messageId"] != body["params"]["message"]["messageId"]
    else:
        faults = [entry for entry in reply["error"]["data"] if entry.get("type") == "aap.error"][0]["details"]["errors"]
        assert faults == shown["error"]["data"][2]["details"]["errors"]


@pytest.mark.parametrize("headers", [aap_headers, lambda name: {}], ids=["headers sent", "headers omitted"])
def test_profile_document(headers):
    status, reply = post("seed3", PROFILE, headers("seed3"))
    assert status == 200
    check_envelope(reply)
    shown = EXCHANGES[2][2]
    assert list(differences(shown, reply, {"fees", "inventory_date", "list_price", "trim"})) == []
    vehicles = reply["result"]["message"]["parts"][0]["data"]["data"]["vehicles"]
    assert {(vehicle["make"], vehicle["status"]) for vehicle in vehicles} == {("Honda", "available")}


# The header table of the binding document, and the conflict rule of the profile.
REFUSALS = [
    ("seed2", "A2A-Version omitted", {"A2A-Version": None}, -32009),
    ("seed2", "A2A-Version empty", {"A2A-Version": ""}, -32009),
    ("seed2", "A2A-Extensions omitted", {"A2A-Extensions": None}, -32008),
    ("seed2", "another version's extension", {"A2A-Extensions": CASES["contracts"]["pinned"]}, -32008),
    ("seed3", "conflicting version", {"A2A-Version": "0.3"}, -32009),
    ("seed3", "conflicting extension", {"A2A-Extensions": CASES["contracts"]["contract2"]}, -32008),
]


@pytest.mark.parametrize("name,changes,code", [(n, c, k) for n, _, c, k in REFUSALS], ids=[row[1] for row in REFUSALS])
def test_header_refusal(name, changes, code):
    headers = {key: value for key, value in {**aap_headers(name), **changes}.items() if value is not None}
    _, reply = post(name, EXCHANGES[0][1], headers)
    assert reply["id"] == "req-1"
    assert reply["error"]["code"] == code
    assert all("@type" in entry and "type" not in entry for entry in reply["error"]["data"])
