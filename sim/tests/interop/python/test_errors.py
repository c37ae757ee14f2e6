"""Every kind of error: what the SDK shows by itself, and what a buyer's httpx hook adds."""

import asyncio

import pytest
from a2a.client import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils import errors as a2a
from dealer import AAP_ERROR, BAD_REQUEST, CASES, ERROR_INFO, admin, buyer, payload, values

SDK_CLASS = {
    -32000: A2AClientError,
    -32001: a2a.TaskNotFoundError,
    -32003: a2a.PushNotificationNotSupportedError,
    -32004: a2a.UnsupportedOperationError,
    -32005: a2a.ContentTypeNotSupportedError,
    -32008: a2a.ExtensionSupportRequiredError,
    -32009: a2a.VersionNotSupportedError,
    -32602: a2a.InvalidParamsError,
    -32603: a2a.InternalError,
}
CASES_BY_SERVER = [
    pytest.param(case, name, id=f"{name}: {case['name']}")
    for case in CASES["errors"]
    for name in case.get("servers", ["pinned", "contract2"])
]


def entry(error, kind):
    """The one entry of `error.data` with this `@type`, or None."""
    found = [item for item in error["data"] if item["@type"] == kind]
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize("case,name", CASES_BY_SERVER)
def test_error(case, name):
    skill, known = case["skill"], values(name)

    async def run():
        async with buyer(name, version=case.get("version", "sdk"), extensions=case.get("extensions")) as shop:
            if "before" in case:
                await shop.ask(skill, payload(skill, case["before"], known))
            leads = admin(name, "/fixtures")["lead_count"]
            with pytest.raises(a2a.A2AError) as caught:
                await shop.send(
                    skill,
                    payload(skill, case, known),
                    message=case.get("message"),
                    media=case.get("media_type"),
                    modes=case.get("modes"),
                )
            assert admin(name, "/fixtures")["lead_count"] == leads, "a refused request leaves no lead"
            return caught.value, shop.wire["error"]

    shown, wire = asyncio.run(run())
    assert wire["code"] == case["code"]
    assert all(isinstance(item["@type"], str) for item in wire["data"])

    # Without the hook: the class tells the code, `data` is ErrorInfo.metadata. For -32000 only a text is left.
    assert type(shown) is SDK_CLASS[case["code"]]
    assert wire["message"] in shown.message
    info = entry(wire, ERROR_INFO)
    if case["code"] == -32000:
        assert shown.message.startswith("JSON-RPC Error -32000: ")
        assert shown.data is None
    else:
        assert shown.data == (info.get("metadata") or None)
        assert all(isinstance(value, str) for value in (shown.data or {}).values())

    typed = entry(wire, AAP_ERROR)
    if case["aap"] is None:
        assert typed is None
        assert (info["reason"], info["domain"]) == (case["reason"], "a2a-protocol.org")
        if case.get("names_extension"):
            uri = CASES["contracts"][name]
            assert shown.data["extensionUri"] == uri
            assert shown.data["requiredHeader"] == "A2A-Extensions"
            assert uri in shown.message
            assert "A2A-Extensions" in shown.message
    else:
        assert case["aap"] in shown.message, "the code must be readable where the SDK keeps only the text"
        assert (info["reason"], info["domain"]) == (case["aap"], "autoagentprotocol.org")
        assert info["metadata"]["code"] == typed["code"] == case["aap"]
        assert typed["retryable"] is case["retryable"]
        assert info["metadata"]["retryable"] == str(case["retryable"]).lower()
        assert info["metadata"]["error_id"] == typed["error_id"]
        for member in case.get("details", []):
            assert typed["details"][member] > 0
            assert int(info["metadata"][member]) == typed["details"][member]
    if "violations" in case:
        listed = entry(wire, BAD_REQUEST)["fieldViolations"]
        assert sorted(fault["field"] for fault in listed) == case["violations"]
        assert all(fault["field"] in shown.message for fault in listed), "all that the SDK keeps of them"
    if "errors" in case:
        listed = {fault["instanceLocation"]: fault["keyword"] for fault in typed["details"]["errors"]}
        assert listed == case["errors"]


async def collect(stream):
    return [event async for event in stream]


def stream_message(client, context):
    request = SendMessageRequest(message=Message(message_id="m-1", role=Role.ROLE_USER))
    return collect(client.send_message(request, context=context))


# name, JSON-RPC code, capability the card must claim before the SDK sends the call at all, call
OPERATIONS = [
    ("GetTask", -32004, None, lambda c, x: c.get_task(GetTaskRequest(id="t-1"), context=x)),
    ("ListTasks", -32004, None, lambda c, x: c.list_tasks(ListTasksRequest(), context=x)),
    ("CancelTask", -32004, None, lambda c, x: c.cancel_task(CancelTaskRequest(id="t-1"), context=x)),
    ("SendStreamingMessage", -32004, "streaming", stream_message),
    ("SubscribeToTask", -32004, "streaming", lambda c, x: collect(c.subscribe(SubscribeToTaskRequest(id="t-1"), context=x))),
    (
        "GetExtendedAgentCard",
        -32004,
        "extended_agent_card",
        lambda c, x: c.get_extended_agent_card(GetExtendedAgentCardRequest(), context=x),
    ),
    (
        "CreateTaskPushNotificationConfig",
        -32003,
        None,
        lambda c, x: c.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id="t-1", url="http://127.0.0.1/hook"), context=x
        ),
    ),
    (
        "GetTaskPushNotificationConfig",
        -32003,
        None,
        lambda c, x: c.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id="t-1", id="p-1"), context=x
        ),
    ),
    (
        "ListTaskPushNotificationConfigs",
        -32003,
        None,
        lambda c, x: c.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id="t-1"), context=x
        ),
    ),
    (
        "DeleteTaskPushNotificationConfig",
        -32003,
        None,
        lambda c, x: c.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id="t-1", id="p-1"), context=x
        ),
    ),
]


@pytest.mark.parametrize("activated", [True, False], ids=["extension activated", "extension omitted"])
@pytest.mark.parametrize("name", ["pinned", "contract2"])
@pytest.mark.parametrize("operation,code,claim,call", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_unsupported_operation(operation, code, claim, call, name, activated):
    async def run():
        async with buyer(name, extensions=None if activated else [], claims=[claim] if claim else []) as shop:
            with pytest.raises(a2a.A2AError) as caught:
                await call(shop.client, shop.context)
            return caught.value, shop.wire["error"]

    shown, wire = asyncio.run(run())
    reasons = {-32003: "PUSH_NOTIFICATION_NOT_SUPPORTED", -32004: "UNSUPPORTED_OPERATION"}
    assert wire["code"] == code
    assert type(shown) is SDK_CLASS[code]
    assert shown.message == wire["message"]
    info = entry(wire, ERROR_INFO)
    assert (info["reason"], info["domain"]) == (reasons[code], "a2a-protocol.org")
    assert entry(wire, AAP_ERROR) is None
