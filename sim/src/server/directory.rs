//! What stands at `/`: the dealers of this process, as JSON, or as a page. Pure.

use serde::Serialize;

use crate::protocol::accept::liking;
use crate::protocol::card;
use crate::world::{Site, World};

/// The forms in which `/` is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Html,
    Text,
}

impl Form {
    const ALL: [Form; 3] = [Form::Json, Form::Html, Form::Text];

    /// Its media type, in two halves.
    fn media_type(self) -> [&'static str; 2] {
        match self {
            Form::Json => ["application", "json"],
            Form::Html => ["text", "html"],
            Form::Text => ["text", "plain"],
        }
    }

    /// The form that `Accept` likes best (RFC 9110, section 12.5.1); `usual` where it likes several as much, or none.
    pub(super) fn wanted(accept: &str, usual: Form) -> Form {
        let others = Form::ALL.into_iter().filter(|form| *form != usual);
        let (mut best, mut liking) = (usual, usual.liking(accept));
        for form in others {
            let likes = form.liking(accept);
            if likes > liking {
                (best, liking) = (form, likes);
            }
        }
        best
    }

    /// How much `Accept` likes it, in thousandths.
    fn liking(self, accept: &str) -> u32 {
        liking([accept], self.media_type()).map_or(0, |(_, weight)| weight)
    }
}

/// The list, as `data/schemas/dealers.schema.json` describes it.
#[derive(Debug, Serialize)]
struct Directory {
    count: usize,
    dealers: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    dealer_id: String,
    name: String,
    /// The JSON-RPC endpoint.
    url: String,
    /// The agent card.
    card: String,
    /// Vehicles known, sold ones among them.
    vehicles: u32,
}

impl Directory {
    fn of(world: &World) -> Directory {
        let line = |site: &Site| {
            let (scene, base) = (site.scene(), site.base_url());
            Line {
                dealer_id: site.id().to_owned(),
                name: scene.dealer.name().to_owned(),
                url: format!("{base}/a2a"),
                card: format!("{base}{}", card::PATH),
                vehicles: scene.dealer.inventory().len(),
            }
        };
        let dealers: Vec<Line> = world.sites().iter().map(line).collect();
        Directory { count: dealers.len(), dealers }
    }
}

/// The dealers as JSON.
pub(super) fn json(world: &World) -> String {
    // Texts and numbers only: nothing here can fail to be written.
    serde_json::to_string(&Directory::of(world)).unwrap_or_default()
}

/// The dealers as a page.
pub(super) fn html(world: &World) -> String {
    let directory = Directory::of(world);
    let count = directory.count;
    let noun = if count == 1 { "dealer" } else { "dealers" };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{count} simulated {noun}</title>\n\
         <h1>{count} simulated {noun}</h1>\n<p>No vehicle here exists, and leads reach nobody.</p>\n<table>\n\
         <tr><th>Dealer<th>Id<th>Vehicles<th>Agent card<th>JSON-RPC endpoint\n"
    );
    for Line { dealer_id, name, url, card, vehicles } in directory.dealers {
        let [name, id, url, card] = [name, dealer_id, url, card].map(|text| escape(&text));
        page.push_str(&format!(
            "<tr><td>{name}<td>{id}<td>{vehicles}<td><a href=\"{card}\">{card}</a><td>{url}\n"
        ));
    }
    page.push_str("</table>\n");
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_what_the_caller_likes_best() {
        for (accept, wanted) in [
            ("", Form::Text),
            ("*/*", Form::Text),
            ("application/json", Form::Json),
            ("Application/JSON;q=0.2", Form::Json),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Form::Html),
            ("text/plain, text/html", Form::Text),
            ("text/*, text/plain;q=0.1", Form::Html),
            ("application/json;q=0.5, text/html;q=0.25", Form::Json),
            ("application/json;q=0, text/html;q=0.001", Form::Html),
            ("application/json;q=7, text/html;q=0.9999", Form::Json),
            ("application/*", Form::Json),
            ("image/png, nonsense, /", Form::Text),
        ] {
            assert_eq!(Form::wanted(accept, Form::Text), wanted, "{accept:?}");
        }
        assert_eq!(Form::wanted("*/*", Form::Json), Form::Json);
        assert_eq!(Form::wanted("application/json, text/plain, */*", Form::Json), Form::Json);
    }

    #[test]
    fn a_page_shows_names_as_they_are() {
        assert_eq!(escape("A&B <\"x\">"), "A&amp;B &lt;&quot;x&quot;&gt;");
    }
}
