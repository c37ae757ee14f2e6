"""The PAP door under tools that know nothing of dealers: the OpenAPI document by a validator of its specification, and the
interface by a tester that makes requests of the document and holds every reply to it."""

import json
import subprocess
import sys
import urllib.request

import openapi_spec_validator
from dealer import server

SEED = "42"
EXAMPLES = "25"
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
]


def document_url():
    return server("pap")["url"].removesuffix("/a2a") + "/pap/openapi.json"


def test_the_document_is_an_openapi_document():
    with urllib.request.urlopen(document_url()) as reply:
        document = json.load(reply)
    assert document["openapi"].startswith("3.1.")
    assert len(document["paths"]) == 5
    openapi_spec_validator.validate(document)


def test_every_reply_is_one_that_the_document_has():
    command = [sys.executable, "-m", "schemathesis.cli", "run", document_url(), "--seed", SEED]
    command += ["--checks", ",".join(CHECKS), "--max-examples", EXAMPLES, "--no-color", "--generation-deterministic"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # All five operations were tried.
    assert "5 selected / 5 total" in ran.stdout, ran.stdout
