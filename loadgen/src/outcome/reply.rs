//! The members of a reply that its outcome depends on, found in one pass.

use super::scan::{Kind, NotJson, Raw, Scanner};

/// A JSON-RPC reply as far as its outcome needs it.
#[derive(Debug, Default)]
pub(super) struct Envelope<'a> {
    pub(super) is_object: bool,
    pub(super) jsonrpc: Option<Raw<'a>>,
    pub(super) id: Option<Raw<'a>>,
    pub(super) error: Option<Raw<'a>>,
    pub(super) result: Option<ResultView<'a>>,
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

impl<'a> Envelope<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Envelope<'a>, NotJson> {
        let mut envelope = Envelope::default();
        let mut scanner = Scanner::new(body);
        envelope.is_object = scanner.object(|name, scanner| {
            match name {
                b"jsonrpc" => envelope.jsonrpc = Some(scanner.value()?),
                b"id" => envelope.id = Some(scanner.value()?),
                b"error" => envelope.error = Some(scanner.value()?),
                b"result" => envelope.result = Some(ResultView::read(scanner)?),
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        scanner.end()?;
        Ok(envelope)
    }
}

impl<'a> ResultView<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<ResultView<'a>, NotJson> {
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
