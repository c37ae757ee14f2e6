//! What a dealer may do to a conversation: its contextId, and the tasks that AAP does not have.

use serde_json::{Value, json};

use super::reply::{Members, edit, message, set, take};
use super::{breach, breach_from_2_0, lawful, text};
use crate::faults::effect::{Apply, Args, Behaviour, EffectInfo};

const FAMILY: &str = "conversation";

// Contracts before 2.0 never show a contextId in a reply, and A2A 1.0 (3.4.1) only says that a dealer may make one.
pub(super) static EFFECTS: &[EffectInfo] = &[
    breach_from_2_0(breach(
        FAMILY,
        "context_id_missing",
        &[],
        "the reply's Message has no contextId",
        Apply::Refine(|_, _, _, out| edit(out, |root| on(root, |message| take(message, "contextId")))),
    )),
    breach_from_2_0(breach(
        FAMILY,
        "context_id_empty",
        &[],
        "the reply's contextId is the empty string",
        Apply::Refine(|_, _, _, out| edit(out, |root| context(root, json!("")))),
    )),
    breach(
        FAMILY,
        "context_id_null",
        &[],
        "the reply's contextId is null",
        Apply::Refine(|_, _, _, out| edit(out, |root| context(root, Value::Null))),
    ),
    breach(
        FAMILY,
        "context_id_retyped",
        &[],
        "the reply's contextId is a number",
        Apply::Refine(|_, _, draw, out| {
            let id = draw.word() >> 32;
            edit(out, |root| context(root, json!(id)));
        }),
    ),
    breach(
        FAMILY,
        "context_id_of_another",
        &[text("id", "\"ctx_of_another_buyer\"", "the contextId that every such reply bears")],
        "the reply bears the contextId of another conversation, always the same",
        Apply::Refine(|args, _, _, out| edit(out, |root| context(root, json!(args.text("id"))))),
    ),
    breach(
        FAMILY,
        "context_id_new",
        &[],
        "every reply bears a contextId of its own, whatever the request brought",
        Apply::Refine(|_, _, draw, out| {
            let id = format!("ctx_{:016x}{:016x}", draw.word(), draw.word());
            edit(out, |root| context(root, json!(id)));
        }),
    ),
    breach(
        FAMILY,
        "context_id_upper_case",
        &[],
        "the reply's contextId is the request's in upper case",
        Apply::Refine(|_, _, _, out| {
            edit(out, |root| {
                on(root, |message| {
                    let upper = message.get("contextId").and_then(Value::as_str).map(str::to_uppercase);
                    upper.is_some_and(|upper| set(message, "contextId", upper))
                })
            });
        }),
    ),
    lawful(
        FAMILY,
        "unknown_context_refused",
        &[],
        "a contextId that the dealer did not make is refused instead of adopted",
        Apply::Behave(|_| Behaviour::RefuseUnknownContext),
    ),
    lawful(
        FAMILY,
        "conversation_expired",
        &[],
        "any contextId is refused: the conversation is over, and a call without one opens another",
        Apply::Behave(|_| Behaviour::ConversationExpired),
    ),
    breach(
        FAMILY,
        "task_id_in_reply",
        &[TASK_ID],
        "the reply's Message names a task, in a dealer that keeps none",
        Apply::Refine(|args, _, _, out| {
            edit(out, |root| on(root, |message| set(message, "taskId", args.text("id"))));
        }),
    ),
    breach(
        FAMILY,
        "reference_task_ids_in_reply",
        &[TASK_ID],
        "the reply's Message refers to a task that does not exist",
        Apply::Refine(|args, _, _, out| {
            edit(out, |root| on(root, |message| set(message, "referenceTaskIds", json!([task_id(args)]))));
        }),
    ),
];

const TASK_ID: crate::faults::effect::Param = text("id", "\"task_1\"", "the identifier of the task");

fn task_id(args: &Args) -> &str {
    args.text("id")
}

fn on(root: &mut Members, change: impl FnOnce(&mut Members) -> bool) -> bool {
    message(root).is_some_and(change)
}

fn context(root: &mut Members, id: Value) -> bool {
    on(root, |message| set(message, "contextId", id))
}
