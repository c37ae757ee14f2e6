// Discovery, the five skills and one conversation, through the SDK's own resolver and client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CASES, ask, at, buyer, fixtures, mediaType, payload, resolveCard, server, values } from './dealer.js';

for (const [name, uri] of Object.entries(CASES.contracts)) {
  test(`card: ${name}`, async () => {
    const card = await resolveCard(name);
    assert.ok(card.name && card.description && card.version);
    assert.deepEqual(card.supportedInterfaces, [
      { url: server(name).url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ]);
    const { extensions, ...flags } = card.capabilities;
    assert.deepEqual(flags, { streaming: false, pushNotifications: false, extendedAgentCard: false });
    assert.deepEqual(extensions.map((one) => [one.uri, one.required]), [[uri, true]]);
    assert.ok(Object.keys(extensions[0].params).length > 0);
    const skills = Object.keys(CASES.stems);
    assert.deepEqual(card.skills.map((skill) => skill.id), skills);
    assert.ok(card.skills.every((skill) => skill.name && skill.description && skill.tags.length > 0));
    assert.deepEqual(card.defaultInputModes, skills.map((skill) => mediaType(skill, 'request')));
    assert.deepEqual(card.defaultOutputModes, skills.map((skill) => mediaType(skill, 'response')));
  });
}

for (const door of CASES.doors) {
  for (const entry of CASES.skills) {
    test(`${door.name}: ${entry.skill}`, async () => {
      const shop = await buyer(door.server, door);
      const body = payload(entry.skill, entry, await values(door.server));
      const { answer } = await ask(shop, entry.skill, body);
      for (const [pointer, kind] of Object.entries(entry.reads)) {
        assert.equal(typeof at(answer.data, pointer), kind, pointer);
      }
    });
  }

  test(`${door.name}: search, detail, lead in one conversation`, async () => {
    const shop = await buyer(door.server, door);
    const known = await values(door.server);
    const before = known.lead_count;

    const search = { type: 'inventory.search.request', filters: { vin: known.available_vin } };
    const { contextId, answer: found } = await ask(shop, 'inventory.search', search);
    const { vin } = found.data.vehicles[0];

    const detail = await ask(shop, 'inventory.vehicle', { type: 'inventory.vehicle.request', vin }, { contextId });
    assert.equal(detail.contextId, contextId);
    assert.equal(detail.answer.data.vin, vin);
    const { year } = detail.answer.data;
    assert.ok(Number.isInteger(year));

    const request = payload('lead.submit', { lead: { vehicle_of_interest: { vin, year } } }, known);
    const lead = await ask(shop, 'lead.submit', request, { contextId });
    assert.equal(lead.contextId, contextId);
    assert.equal(lead.answer.data.status, 'received');
    assert.equal((await fixtures(door.server)).lead_count, before + 1);
  });
}
