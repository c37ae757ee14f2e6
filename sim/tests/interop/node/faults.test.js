// Every fault of three families, asked for by header and by magic value through the SDK, and what the SDK shows of it.
// What is shown goes to the folder that INTEROP_SHOWN names; `python/faults_table.py` makes the table of it.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Role } from '@a2a-js/sdk';
import { AAP_ERROR, CASES, buyer, fixtures, mediaType, server } from './dealer.js';

const NAME = 'faults_node';
const FAULTS = JSON.parse(readFileSync(join(dirname(process.env.INTEROP_CASES), 'faults.json'), 'utf8'));
const ROUTE_OF = Object.fromEntries(
  Object.entries(FAULTS.routes).flatMap(([route, effects]) => effects.map((effect) => [effect, route])),
);
// What differs from run to run: identifiers, ports, JSON-RPC ids, the rest of an hour's wait.
const PASSING = [
  [/\b(?:[a-z]+_)?[0-9A-HJKMNP-TV-Z]{26}\b|\b(?:[a-z]+_)?[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<id>'],
  [/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>'],
  [/\b(Expected|got) \d+/g, '$1 <n>'],
  [/\b3[56]\d{5} ms/g, '<n> ms'],
];
const LONGEST = 120;

/** A text of one line without identifiers that differ from run to run, shortened. */
function tidy(text) {
  const lasting = PASSING.reduce((soFar, [pattern, standIn]) => soFar.replace(pattern, standIn), text);
  const line = lasting.split(/\s+/).join(' ').trim();
  const letters = [...line];
  return letters.length <= LONGEST ? line : `${letters.slice(0, LONGEST).join('')}…`;
}

/** A document as Map(path -> value); an empty list or object is a value. */
function flat(value, path = '', into = new Map()) {
  if (value !== null && typeof value === 'object' && Object.keys(value).length > 0) {
    for (const [name, member] of Object.entries(value)) flat(member, `${path}/${name}`, into);
  } else if (value !== undefined) {
    into.set(path, value);
  }
  return into;
}

function word(value, whole = false) {
  if (whole) return JSON.stringify(value);
  const letters = [...tidy(JSON.stringify(value))];
  return letters.length <= 60 ? letters.join('') : `${letters.slice(0, 60).join('')}…`;
}

/** What a fault changed in what is shown: at most three members, and how many more. With `ids` new identifiers count. */
function difference(plain, shown, ids = false) {
  if (typeof shown === 'string') return shown;
  const changed = [];
  const depth = (path) => path.split('/').length;
  const order = (one, other) => depth(one) - depth(other) || (one < other ? -1 : 1);
  for (const path of [...new Set([...plain.keys(), ...shown.keys()])].sort(order)) {
    const short = path.replace(/^\/parts\/0\/data\/data/, '').replace(/^\//, '');
    const whole = ids && path !== '/messageId';
    if (!shown.has(path)) changed.push(`${short} is gone`);
    else if (!plain.has(path)) changed.push(`${short} is new: ${word(shown.get(path))}`);
    else if (word(plain.get(path), whole) !== word(shown.get(path), whole)) {
      changed.push(`${short} is ${word(shown.get(path))} instead of ${word(plain.get(path))}`);
    }
  }
  const more = changed.length > 3 ? ` (and ${changed.length - 3} more)` : '';
  return changed.length > 0 ? changed.slice(0, 3).join('; ') + more : 'as without the fault';
}

/** A Message in the form of its JSON. */
function asJson({ role, parts, ...rest }) {
  const inJson = ({ content, ...others }) => (content ? { ...others, [content.$case]: content.value } : others);
  return { ...rest, role: Role[role] ?? role, parts: parts.map(inJson) };
}

/** An exception, by its class and the beginning of its message, and the AAP code that its data still holds. */
function said(error) {
  const typed = Array.isArray(error.data) ? error.data.find((entry) => entry?.['@type'] === AAP_ERROR) : undefined;
  const kept = typed ? ` (in data: ${typed.code})` : '';
  // The words of a SyntaxError are the language's: they change with its version.
  return error.name === 'SyntaxError' ? error.name : `${error.name}: ${tidy(String(error.message))}${kept}`;
}

/** The fields of the last reply, whatever the SDK made of it. */
let fields = new Headers();
const usual = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const reply = await usual(...request);
  fields = reply.headers;
  return reply;
};

/** What the SDK shows of one call, as a flat document or a text; and what the reply says of faults. */
async function show(shop, skill, body, fault) {
  const part = { content: { $case: 'data', value: body }, mediaType: mediaType(skill, 'request'), filename: '' };
  const message = {
    messageId: 'm-of-request', contextId: 'ctx_of_buyer', taskId: '', role: Role.ROLE_USER, parts: [part], extensions: [], referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: [mediaType(skill, 'response')] };
  const serviceParameters = { ...shop.options.serviceParameters, 'X-Sim-Client': String(fault) };
  if (fault) serviceParameters['X-Sim-Fault'] = fault;
  fields = new Headers();
  let shown;
  try {
    const reply = await shop.client.sendMessage({ message, configuration }, { serviceParameters });
    shown = reply.parts === undefined && reply.status !== undefined ? 'a Task' : flat(asJson(reply));
  } catch (error) {
    shown = said(error);
  }
  return [shown, fields.get('X-Sim-Fault-Applied') ?? ''];
}

test('every fault', async () => {
  const catalogue = (await (await usual(`${server(NAME).admin}/faults/catalogue`)).json()).effects;
  const effects = catalogue.filter((effect) => FAULTS.families.includes(effect.family));
  const known = await fixtures(NAME);
  const shop = await buyer(NAME);
  const ask = (route, name, fault) => {
    const [skill] = route.split(',');
    const text = JSON.stringify(FAULTS.requests[route]).replace(/\$\{(\w+)\}/g, (_, key) => ({ ...known, name })[key]);
    return show(shop, skill, { type: `${skill}.request`, ...JSON.parse(text) }, fault);
  };
  const plain = {};
  for (const route of Object.keys(FAULTS.requests)) {
    [plain[route]] = await ask(route, `Plain ${route}`, null);
    assert.ok(plain[route] instanceof Map, plain[route]);
  }
  const rows = [];
  for (const { name, family } of effects) {
    const route = ROUTE_OF[name] ?? 'inventory.search';
    const fault = name + (FAULTS.arguments[name] ?? '');
    const twice = FAULTS.twice.includes(name);
    let before = plain[route];
    if (twice) [before] = await ask(route, name, name === 'token_bucket' ? fault : null);
    const [shown, told] = await ask(route, name, fault);
    assert.ok(told.startsWith(`header; ${name}`), `${name} was not reached: ${told}`);
    rows.push([family, name, route, difference(before, shown, twice)]);
    const magic = { type: 'inventory.vehicle.request', stock: `SIM:${name}` };
    const [, toldOfMagic] = await show(shop, 'inventory.vehicle', magic, null);
    assert.ok(toldOfMagic.startsWith(`magic:SIM:${name}; ${name}`), `${name} was not reached by magic: ${toldOfMagic}`);
  }
  const all = Object.fromEntries(rows.map(([, name, , shown]) => [name, shown]));
  for (const code of FAULTS.codes) assert.ok(all[code.toLowerCase()].includes(code), `${code}: ${all[code.toLowerCase()]}`);
  writeFileSync(join(process.env.INTEROP_SHOWN, 'node.json'), JSON.stringify(rows));
});
