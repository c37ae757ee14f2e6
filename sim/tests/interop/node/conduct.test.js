// The SDK's client as a buyer agent that the dealer judges: as it comes, and set up as AAP asks; see test_conduct.py.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Role } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client';
import { mediaType, payload, server, values } from './dealer.js';

// What is left to the application, or to a cache of its own, once the client is set up.
const LEFT = ['discovery.card_fresh', 'discovery.card_revalidated'];

// What setting it up is for.
const SET_UP = ['envelope.a2a_extensions', 'envelope.accepted_output_modes'];

/** Card, two pages, a vehicle and a lead in one conversation; and two further clients, when the card has expired. */
async function shop(name, setUp) {
  const resolver = new DefaultAgentCardResolver();
  const { origin } = new URL(server(name).card);
  const card = await resolver.resolve(origin);
  const client = await new ClientFactory().createFromAgentCard(card);
  const uris = card.capabilities.extensions.filter((one) => one.required).map((one) => one.uri);
  const options = setUp ? { serviceParameters: ServiceParameters.create(withA2AExtensions(...uris)) } : undefined;
  let contextId = '';

  async function ask(skill, body) {
    const value = { type: `${skill}.request`, ...body };
    const message = {
      messageId: randomUUID(),
      contextId,
      taskId: '',
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'data', value }, mediaType: mediaType(skill, 'request'), filename: '' }],
      extensions: [],
      referenceTaskIds: [],
    };
    const configuration = { acceptedOutputModes: [mediaType(skill, 'response')] };
    // On a connection of its own a call may come before the end of the reply before it is on record: then two are under way.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const reply = await client.sendMessage(setUp ? { message, configuration } : { message }, options);
    ({ contextId } = reply);
    return reply.parts[0].content.value.data;
  }

  const search = { filters: { condition: ['used'] }, privacy: { anonymous: true } };
  await ask('inventory.search', { ...search, pagination: { skip: 0, limit: 5 } });
  const page = await ask('inventory.search', { ...search, pagination: { skip: 5, limit: 5 } });
  const vehicle = await ask('inventory.vehicle', { vin: page.vehicles[0].vin });
  const { type: _, ...lead } = payload('lead.submit', { lead: {} }, await values(name));
  const received = await ask('lead.submit', {
    ...lead,
    vehicle_of_interest: { vin: vehicle.vin },
    idempotency_key: randomUUID(),
    message: `Is $${vehicle.price} the last word?`,
  });
  assert.equal(received.status, 'received');

  await new Promise((resolve) => setTimeout(resolve, 1200));
  await resolver.resolve(origin);
  await resolver.resolve(origin);
}

for (const way of ['plain', 'set_up']) {
  test(`conduct: ${way}`, async () => {
    const name = `conduct_node_${way}`;
    await shop(name, way === 'set_up');
    const report = await (await fetch(`${server(name).admin}/conduct?format=json`)).json();
    assert.equal(report.clients.length, 1);
    const [client] = report.clients;
    assert.deepEqual([client.calls, report.unknown], [4, 0]);
    const broken = client.rules.filter((rule) => rule.status === 'broken').map((rule) => rule.id);
    assert.deepEqual(broken, way === 'set_up' ? LEFT : [...LEFT, ...SET_UP]);
    const of = (member) => Object.fromEntries(client.rules.map((rule) => [rule.id, rule[member]]));
    const shown = { status: of('status'), severity: of('severity') };
    writeFileSync(join(process.env.INTEROP_SHOWN, `${name}.json`), JSON.stringify(shown));
  });
}
