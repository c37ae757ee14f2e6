//! The members of a reply that its outcome depends on, found in one pass.

use super::Breach;
use super::scan::{Kind, NotJson, Raw, Scanner};

/// A JSON-RPC reply as far as its outcome needs it; `R` is what its binding reads of `result`.
#[derive(Debug)]
pub(super) struct Envelope<'a, R> {
    pub(super) is_object: bool,
    pub(super) jsonrpc: Option<Raw<'a>>,
    pub(super) id: Option<Raw<'a>>,
    pub(super) error: Option<Raw<'a>>,
    pub(super) result: Option<R>,
}

/// `result`.
#[derive(Debug, Default)]
pub(super) struct ResultView<'a> {
    pub(super) is_null: bool,
    pub(super) message: Option<MessageView<'a>>,
    /// Members of a message where `message` should be.
    pub(super) is_flat: bool,
    pub(super) has_task: bool,
}

/// `result.message`.
#[derive(Debug, Default)]
pub(super) struct MessageView<'a> {
    pub(super) is_object: bool,
    pub(super) message_id: Option<Raw<'a>>,
    pub(super) context_id: Option<Raw<'a>>,
    pub(super) role: Option<Raw<'a>>,
    pub(super) part: Option<PartView<'a>>,
}

/// The first part.
#[derive(Debug, Default)]
pub(super) struct PartView<'a> {
    pub(super) media_type: Option<Raw<'a>>,
    pub(super) has_data: bool,
    pub(super) payload_type: Option<Raw<'a>>,
}

impl<'a, R> Envelope<'a, R> {
    pub(super) fn read(
        body: &'a [u8],
        read_result: impl Fn(&mut Scanner<'a>) -> Result<R, NotJson>,
    ) -> Result<Envelope<'a, R>, NotJson> {
        let mut envelope = Envelope { is_object: false, jsonrpc: None, id: None, error: None, result: None };
        let mut scanner = Scanner::new(body);
        envelope.is_object = scanner.object(|name, scanner| {
            match name {
                b"jsonrpc" => envelope.jsonrpc = Some(scanner.value()?),
                b"id" => envelope.id = Some(scanner.value()?),
                b"error" => envelope.error = Some(scanner.value()?),
                b"result" => envelope.result = Some(read_result(scanner)?),
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        scanner.end()?;
        Ok(envelope)
    }

    /// Holds the id to the one sent. Who could not read the request (-32700, -32600) cannot know it and says null (JSON-RPC 2.0,
    /// section 5).
    pub(super) fn check_error_id(&self, code: i64, sent: &[u8]) -> Result<(), Breach> {
        if is_unread(code) && self.id.is_some_and(|id| id.kind() == Kind::Null) {
            return Ok(());
        }
        check_id(self.id, sent)
    }
}

/// Whether an error says that the request could not be read.
pub(super) fn is_unread(code: i64) -> bool {
    matches!(code, -32700 | -32600)
}

/// The id must come back in value and type: `"7"` is not `7`.
pub(super) fn check_id(id: Option<Raw<'_>>, sent: &[u8]) -> Result<(), Breach> {
    let id = id.ok_or(Breach::Id)?;
    // Equal bytes are the rule; the same string may be escaped otherwise.
    let equal =
        id.0 == sent || (id.kind() == Kind::String && id.text().is_some() && id.text() == Raw(sent).text());
    if equal { Ok(()) } else { Err(Breach::Id) }
}

impl<'a> ResultView<'a> {
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<ResultView<'a>, NotJson> {
        let mut view = ResultView::default();
        let mut null_probe = scanner.clone();
        let is_object = scanner.object(|name, scanner| {
            match name {
                b"message" => view.message = Some(MessageView::read(scanner)?),
                b"task" => {
                    view.has_task = true;
                    scanner.value()?;
                }
                b"parts" | b"messageId" | b"role" => {
                    view.is_flat = true;
                    scanner.value()?;
                }
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        // A value that is no object is short or rare: looking at it twice costs nothing.
        view.is_null = !is_object && null_probe.value()?.kind() == Kind::Null;
        Ok(view)
    }
}

impl<'a> MessageView<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<MessageView<'a>, NotJson> {
        let mut view = MessageView::default();
        view.is_object = scanner.object(|name, scanner| {
            match name {
                b"messageId" => view.message_id = Some(scanner.value()?),
                b"contextId" => view.context_id = Some(scanner.value()?),
                b"role" => view.role = Some(scanner.value()?),
                b"parts" => {
                    view.part = None;
                    scanner.array(|index, scanner| {
                        if index == 0 {
                            view.part = Some(PartView::read(scanner)?);
                        } else {
                            scanner.value()?;
                        }
                        Ok(())
                    })?;
                }
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        Ok(view)
    }
}

impl<'a> PartView<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<PartView<'a>, NotJson> {
        let mut view = PartView::default();
        scanner.object(|name, scanner| {
            match name {
                b"mediaType" => view.media_type = Some(scanner.value()?),
                b"data" => {
                    view.payload_type = None;
                    view.has_data = scanner.object(|name, scanner| {
                        let value = scanner.value()?;
                        if name == b"type" {
                            view.payload_type = Some(value);
                        }
                        Ok(())
                    })?;
                }
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        Ok(view)
    }
}
