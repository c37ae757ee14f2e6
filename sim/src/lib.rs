//! A car dealer that does not exist: speaks the Auto Agent Protocol (AAP) over A2A 1.0 JSON-RPC, serves a synthetic
//! inventory of any size, and does both exactly.
//!
//! In a test, [`Dealer::builder`] gives a dealer on a free loopback port that stops when it is dropped:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use dealer_sim::Dealer;
//! let dealer = Dealer::builder().seed(7).vehicles(40).start().await?;
//! assert!(dealer.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It misbehaves as told. Here the first lead is stored and its answer lost; an agent that sends it again with the same
//! `idempotency_key` gets the receipt, and the customer hears from one salesperson:
//!
//! ```
//! # use std::io::{Read as _, Write as _};
//! # struct MyAgent(String);
//! # impl MyAgent {
//! #     fn new(url: String) -> MyAgent { MyAgent(url) }
//! #     /// Sends a lead until it is answered.
//! #     async fn send_lead(&self) -> String {
//! #         let address = self.0.strip_prefix("http://").unwrap().strip_suffix("/a2a").unwrap();
//! #         let lead = r#"{"type":"lead.submit.request","idempotency_key":"k-1","customer":{"first_name":"Anna","last_name":"Lee",
//! #             "email":"anna@example.com"},"consent":{"granted_at":"2026-01-01T00:00:00Z","allowed_channels":["email"],
//! #             "consent_text":"I agree.","scope":["lead_submission"]},"source_agent":{"name":"my-agent"}}"#;
//! #         let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m-1",
//! #             "role":"ROLE_USER","parts":[{{"mediaType":"application/vnd.autoagent.lead-submit-request+json","data":{lead}}}]}}}}}}"#);
//! #         let mut reply = String::new();
//! #         while reply.is_empty() {
//! #             let mut stream = std::net::TcpStream::connect(address).unwrap();
//! #             write!(stream, "POST /a2a HTTP/1.1\r\nhost: dealer\r\nconnection: close\r\ncontent-type: application/json\r\n\
//! #                 content-length: {}\r\n\r\n{body}", body.len()).unwrap();
//! #             _ = stream.read_to_string(&mut reply);
//! #         }
//! #         reply
//! #     }
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let plan = "rules: [{ id: lost, when: { skill: lead.submit, first: 1 }, effect: reset_after_commit }]".parse()?;
//! let dealer = dealer_sim::Dealer::builder().seed(7).faults(plan).start().await?;
//! let receipt = MyAgent::new(dealer.url()).send_lead().await;
//! assert!(receipt.contains("\"status\":\"received\""), "{receipt}");
//! assert_eq!(dealer.world().leads_in_all(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admin;
pub mod auth;
mod builder;
pub mod cli;
pub mod conduct;
pub mod dealer;
pub mod dispatch;
pub mod document;
pub mod faults;
pub mod flags_file;
pub mod inventory;
pub mod journal;
pub mod ledger;
pub mod log;
pub mod protocol;
pub mod run;
pub mod server;
pub mod share;
mod spread;
pub mod stable;
pub mod timer;
pub mod world;

pub use builder::{BuildError, Dealer, DealerBuilder, RunningDealer};
