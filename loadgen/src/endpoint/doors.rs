//! The doors beside A2A: where the agent card says that they are (BINDINGS, section c.5), and for PAP what its documents say
//! (sections a.2 and c.3).

use dealer_sim::protocol::mcp::tool_name;
use dealer_sim::protocol::{Binding, Skill, pap};
use serde_json::Value;

use super::{Endpoint, EndpointError, Seen, get, stay_with};
use crate::transport::{Address, Options};

impl Seen {
    /// The dealer by MCP.
    pub(super) fn mcp(&self) -> Result<Endpoint, EndpointError> {
        let target = self.link("/mcp/url").ok_or_else(|| self.no_door(Binding::Mcp))??;
        Ok(self.endpoint(target, Binding::Mcp, None))
    }

    /// The dealer by PAP: its OpenAPI document says where the skills are.
    pub(super) async fn pap(&self, options: &Options) -> Result<Endpoint, EndpointError> {
        let openapi = match self.link("/pap/openapi_url") {
            Some(address) => address?,
            None => {
                let poppy = self.link("/pap/discovery_url").ok_or_else(|| self.no_door(Binding::Pap))??;
                let document = self.fetch(&poppy, options).await?;
                openapi_of(&poppy, &document)?
            }
        };
        let document = self.fetch(&openapi, options).await?;
        let (address, paths) = skills_of(&openapi, &document)?;
        Ok(Endpoint { paths: Some(paths), ..self.endpoint(address, Binding::Pap, None) })
    }

    fn no_door(&self, binding: Binding) -> EndpointError {
        EndpointError::NoDoor { url: self.address.to_string(), binding }
    }

    /// The address at a place of the params, if there is a text.
    fn link(&self, pointer: &str) -> Option<Result<Address, EndpointError>> {
        let url = self.params.pointer(pointer)?.as_str()?;
        let bad = |error| EndpointError::BadCard {
            url: self.address.to_string(),
            reason: format!("params{pointer}: {error}"),
        };
        Some(Address::parse(url).map_err(bad))
    }

    async fn fetch(&self, address: &Address, options: &Options) -> Result<Value, EndpointError> {
        stay_with(&self.address, address, options)?;
        let (status, _, body) = get(address, options).await?;
        if status != 200 {
            return Err(useless(address, format!("HTTP {status}")));
        }
        serde_json::from_slice(&body).map_err(|error| useless(address, error.to_string()))
    }
}

fn useless(address: &Address, reason: impl Into<String>) -> EndpointError {
    EndpointError::BadDocument { url: address.to_string(), reason: reason.into() }
}

/// The OpenAPI document that a poppy.json lists.
fn openapi_of(poppy: &Address, document: &Value) -> Result<Address, EndpointError> {
    let apis = document["apis"].as_array().into_iter().flatten();
    let url = apis.filter(|api| api["type"] == "openapi").find_map(|api| api["url"].as_str());
    let url = url.ok_or_else(|| useless(poppy, "no entry of apis has the type openapi and a url"))?;
    Address::parse(url).map_err(|error| useless(poppy, error.to_string()))
}

/// Where the paths of an OpenAPI document begin, and the path of each skill.
pub(crate) fn skills_of(
    openapi: &Address,
    document: &Value,
) -> Result<(Address, [String; Skill::ALL.len()]), EndpointError> {
    let server = document.pointer("/servers/0/url").and_then(Value::as_str).unwrap_or("/");
    // OpenAPI 3.1, section 4.6: a relative URL is one from the document's own place, and none means the root.
    let base = match server.strip_prefix('/') {
        Some(_) => openapi.with_target(server),
        None => Address::parse(server).map_err(|error| useless(openapi, format!("servers: {error}")))?,
    };
    let prefix = base.target.trim_end_matches('/');
    let operations: Vec<(&String, &Value)> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(path, item)| Some((path, item.get("post")?)))
        .collect();
    let is_of = |skill: Skill, operation: &Value| {
        operation["x-aap-skill"] == skill.id() || operation["operationId"] == tool_name(skill)
    };
    let found = Skill::ALL.map(|skill| operations.iter().find(|(_, operation)| is_of(skill, operation)));
    if found.iter().all(Option::is_none) {
        let what = "no POST names a skill in x-aap-skill or operationId";
        return Err(useless(openapi, what));
    }
    // A skill that the document lacks is asked where others have it: the dealer then says that it does not offer it.
    let mut paths = Skill::ALL.map(|skill| format!("{prefix}{}", pap::path(skill)));
    for (path, found) in paths.iter_mut().zip(found) {
        if let Some((known, _)) = found {
            *path = format!("{prefix}{known}");
        }
    }
    Ok((base, paths))
}

/// The paths of the skills below a URL, as their ids say.
pub(super) fn usual_paths(address: &Address) -> [String; Skill::ALL.len()] {
    let prefix = address.target.trim_end_matches('/');
    Skill::ALL.map(|skill| format!("{prefix}/{}", skill.id().replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    #[test]
    fn the_document_says_where_the_skills_are() {
        let document = json!({
            "servers": [{ "url": "https://h.test:8443/api/" }],
            "paths": {
                "/find": { "post": { "x-aap-skill": "inventory.search" } },
                "/lead": { "get": {}, "post": { "operationId": "aap_lead_submit" } },
                "/other": { "post": { "operationId": "other" } },
            },
        });
        let (base, paths) = skills_of(&at("https://h.test/openapi.json"), &document).unwrap();
        assert_eq!(base.origin(), "https://h.test:8443");
        assert_eq!(paths[Skill::InventorySearch as usize], "/api/find");
        assert_eq!(paths[Skill::LeadSubmit as usize], "/api/lead");
        assert_eq!(paths[Skill::InventoryFacets as usize], "/api/pap/v3/inventory/facets");
    }

    #[test]
    fn a_relative_server_is_the_document_s() {
        let mut document = json!({ "paths": { "/x": { "post": { "operationId": "aap_lead_submit" } } } });
        for (server, path) in [(None, "/x"), (Some("/"), "/x"), (Some("/v3"), "/v3/x")] {
            if let Some(server) = server {
                document["servers"] = json!([{ "url": server }]);
            }
            let (base, paths) = skills_of(&at("http://h.test:81/pap/openapi.json"), &document).unwrap();
            assert_eq!((base.origin().as_str(), paths[4].as_str()), ("http://h.test:81", path));
        }
    }

    #[test]
    fn a_document_that_says_nothing_is_told_so() {
        let openapi = at("http://h.test/openapi.json");
        for document in [json!({}), json!([]), json!({ "paths": { "/x": { "get": {} } } })] {
            let error = skills_of(&openapi, &document).unwrap_err().to_string();
            assert!(error.contains("x-aap-skill"), "{error}");
        }
        let poppy = json!({ "apis": [{ "type": "mcp", "url": "http://h.test/mcp" }] });
        assert!(openapi_of(&openapi, &poppy).is_err());
        let poppy = json!({ "apis": [{ "type": "openapi", "url": "http://h.test/o.json" }] });
        assert_eq!(openapi_of(&openapi, &poppy).unwrap().target, "/o.json");
    }

    #[test]
    fn skills_stand_below_a_raw_url() {
        for url in ["http://h.test/pap/v3", "http://h.test/pap/v3/"] {
            assert_eq!(usual_paths(&at(url))[0], "/pap/v3/dealer/information");
        }
    }
}
