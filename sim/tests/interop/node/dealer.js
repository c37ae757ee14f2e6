// What the Node tests share: the servers that run.sh started, the table of cases, and a buyer on the SDK.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Role } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client';

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));

export const CASES = read(process.env.INTEROP_CASES);
export const AAP_ERROR = 'https://autoagentprotocol.org/extensions/aap/error';
export const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';
export const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';

/** The first output line of a server: its `url`, `card` and `admin`. */
export const server = (name) => read(join(process.env.INTEROP_SERVERS, `${name}.json`));

/** The values to test with of a server. */
export const fixtures = async (name) => (await fetch(`${server(name).admin}/fixtures`)).json();

/** The AAP media type of a skill's `request` or `response`. */
export const mediaType = (skill, way) => `application/vnd.autoagent.${CASES.stems[skill]}-${way}+json`;

/** What `${...}` in the cases stands for: the server's fixtures, times, a word that no other test uses. */
export async function values(name) {
  const ago = (ms) => `${new Date(Date.now() - ms).toISOString().slice(0, 19)}Z`;
  return { ...(await fixtures(name)), minute_ago: ago(60_000), day_ago: ago(86_400_000), unique: randomUUID() };
}

/** The AAP request of a case; a lead is the table's own lead with members replaced, or (null) left out. */
export function payload(skill, entry, known) {
  const body = { type: `${skill}.request`, ...(entry.payload ?? { ...CASES.lead, ...entry.lead }) };
  const kept = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  return JSON.parse(JSON.stringify(kept).replace(/\$\{(\w+)\}/g, (_, word) => known[word]));
}

/** The value at a JSON Pointer (no escapes are needed here). */
export const at = (document, pointer) => pointer.split('/').slice(1).reduce((value, step) => value[step], document);

/** Sets or removes A2A-Version, which the client itself always fills in; a client interceptor comes after that. */
const versionInterceptor = (version) => ({
  async before(args) {
    delete args.options.serviceParameters['A2A-Version'];
    if (version !== null) args.options.serviceParameters['A2A-Version'] = version;
  },
  async after() {},
});

/** The card as the SDK's own resolver reads it. */
export const resolveCard = (name) => new DefaultAgentCardResolver().resolve(new URL(server(name).card).origin);

/**
 * A buyer agent of the server `name`. Without `version` the SDK's own is sent, null omits it; without `extensions` the
 * card's required one is activated. `claims` are capabilities to set on the card that the SDK then believes.
 */
export async function buyer(name, { version, extensions, claims = [] } = {}) {
  const card = await resolveCard(name);
  for (const capability of claims) card.capabilities[capability] = true;
  const interceptors = version === undefined ? [] : [versionInterceptor(version)];
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { clientConfig: { interceptors } });
  const client = await new ClientFactory(options).createFromAgentCard(card);
  const uris = extensions ?? card.capabilities.extensions.filter((one) => one.required).map((one) => one.uri);
  const activate = uris.length > 0 ? [withA2AExtensions(...uris)] : [];
  const serviceParameters = { ...ServiceParameters.create(...activate), 'X-Sim-Client': randomUUID() };
  return { client, card, options: { serviceParameters } };
}

/** Sends one AAP request through `Client.sendMessage`; resolves to the reply Message. */
export async function send(shop, skill, body, { contextId = '', message = {}, media, modes } = {}) {
  const data = { content: { $case: 'data', value: body }, mediaType: media ?? mediaType(skill, 'request'), filename: '' };
  const text = { content: { $case: 'text', value: 'Hello' }, mediaType: '', filename: '' };
  const request = {
    messageId: message.messageId ?? randomUUID(),
    contextId,
    taskId: message.taskId ?? '',
    role: Role[message.role ?? 'ROLE_USER'],
    parts: { none: [], 'text first': [text, data] }[message.parts] ?? [data],
    extensions: [],
    referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: modes ?? [mediaType(skill, 'response')] };
  const reply = await shop.client.sendMessage({ message: request, configuration }, shop.options);
  assert.equal(reply.role, Role.ROLE_AGENT);
  assert.ok(reply.contextId, 'every reply has a contextId');
  assert.ok(reply.messageId && reply.messageId !== request.messageId);
  return reply;
}

/** As `send`, and resolves to the contextId and the AAP response object of the first part. */
export async function ask(shop, skill, body, options) {
  const { contextId, parts } = await send(shop, skill, body, options);
  assert.equal(parts[0].mediaType, mediaType(skill, 'response'));
  assert.equal(parts[0].content.$case, 'data');
  assert.equal(parts[0].content.value.type, `${skill}.response`);
  return { contextId, answer: parts[0].content.value };
}
