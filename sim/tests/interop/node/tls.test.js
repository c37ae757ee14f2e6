// The SDK's client over TLS, as Node's fetch speaks it; HTTP/2 by Node's own client.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, buyer, payload, server, values } from './dealer.js';

const SEARCH = { payload: { filters: {}, pagination: { limit: 3 } } };
const pki = (name) => readFileSync(join(process.env.INTEROP_PKI, name));

test('secure: a search through the SDK', async () => {
  const shop = await buyer('secure');
  assert.equal(shop.card.supportedInterfaces[0].url, server('secure').url);
  const found = await ask(shop, 'inventory.search', payload('inventory.search', SEARCH, await values('secure')));
  assert.equal(JSON.stringify(found).split('"vin":').length - 1, 3);
});

/** The status of the card, by Node's https with this certificate. */
const statusWith = (own) =>
  new Promise((resolve, reject) => {
    const certificate = own ? { cert: pki(`${own}.pem`), key: pki(`${own}.key`) } : {};
    const options = { ...certificate, agent: false };
    https.get(server('mutual').card, options, (reply) => resolve(reply.resume().statusCode)).on('error', reject);
  });

test('mutual: the buyer is served, and the stranger is not', async () => {
  assert.equal(await statusWith('buyer'), 200);
  await assert.rejects(statusWith('stranger'));
  await assert.rejects(statusWith(undefined));
});

for (const name of ['secure', 'pinned']) {
  test(`${name}: many requests on one connection of HTTP/2`, async () => {
    const { card } = server(name);
    const session = http2.connect(new URL(card).origin);
    const get = () =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':path': new URL(card).pathname });
        let status;
        let text = '';
        stream.on('response', (head) => (status = head[':status']));
        stream.setEncoding('utf8').on('data', (piece) => (text += piece));
        stream.on('end', () => resolve([status, JSON.parse(text).supportedInterfaces[0].url])).on('error', reject);
      });
    const replies = await Promise.all(Array.from({ length: 50 }, get));
    session.close();
    assert.deepEqual(replies, Array(50).fill([200, server(name).url]));
  });
}
