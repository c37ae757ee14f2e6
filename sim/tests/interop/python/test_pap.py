"""The PAP door under tools that know nothing of dealers: the OpenAPI document by a validator of its specification, and the
interface by a tester that makes requests of the document and holds every reply to it."""

import json
import subprocess
import sys
import urllib.request

import openapi_spec_validator
from dealer import server

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
]


def document_url(name):
    return server(name)["url"].removesuffix("/a2a") + "/pap/openapi.json"


def test_the_document_is_an_openapi_document():
    with urllib.request.urlopen(document_url("pap"), timeout=10) as reply:
        document = json.load(reply)
    assert document["openapi"].startswith("3.1.")
    assert len(document["paths"]) == 5
    openapi_spec_validator.validate(document)


def tried(name, *flags):
    """What the tester makes of a server. The same requests each time."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", document_url(name), "--no-color"]
    command += ["--checks", ",".join(CHECKS), "--generation-deterministic", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_every_reply_is_one_that_the_document_has():
    ran = tried("pap", "--max-examples", "25")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 selected / 5 total" in ran.stdout, ran.stdout


def test_a_reply_that_the_document_does_not_have_is_found():
    search = ("--include-path", "/pap/v3/inventory/search", "--phases", "fuzzing", "--max-examples", "5")
    ran = tried("pap_spoilt", *search)
    assert ran.returncode == 1 and "price" in ran.stdout, ran.stdout + ran.stderr
