// Every kind of error as the SDK shows it: a class by the code, and the whole `error.data` array.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError, isJsonRpcError } from '@a2a-js/sdk/errors';
import { AAP_ERROR, BAD_REQUEST, CASES, ERROR_INFO, ask, buyer, fixtures, payload, send, values } from './dealer.js';

const SDK_CLASS = {
  [-32000]: 'JsonRpcTransportError',
  [-32001]: 'TaskNotFoundError',
  [-32003]: 'PushNotificationNotSupportedError',
  [-32004]: 'UnsupportedOperationError',
  [-32005]: 'ContentTypeNotSupportedError',
  [-32008]: 'ExtensionSupportRequiredError',
  [-32009]: 'VersionNotSupportedError',
  [-32602]: 'RequestMalformedError',
  [-32603]: 'JsonRpcTransportError',
};

/** The one entry of `error.data` with this `@type`, or undefined. */
function entryOf(error, kind) {
  const found = error.data.filter((item) => item['@type'] === kind);
  assert.ok(found.length < 2);
  return found[0];
}

/** The JSON-RPC error that `call` must end with, seen through the SDK. */
async function failure(call, code) {
  const error = await call.then(
    () => assert.fail('the call should have failed'),
    (reason) => reason,
  );
  assert.ok(error instanceof A2AError && isJsonRpcError(error), String(error));
  assert.equal(error.envelopeCode, code);
  assert.equal(error.name, SDK_CLASS[code]);
  assert.ok(error.data.every((item) => typeof item['@type'] === 'string'));
  assert.ok(Object.values(entryOf(error, ERROR_INFO).metadata ?? {}).every((value) => typeof value === 'string'));
  return error;
}

for (const entry of CASES.errors) {
  for (const name of entry.servers ?? ['pinned', 'contract2']) {
    test(`${name}: ${entry.name}`, async () => {
      const { skill, aap } = entry;
      const known = await values(name);
      const shop = await buyer(name, entry);
      if (entry.before) await ask(shop, skill, payload(skill, entry.before, known));
      const leads = (await fixtures(name)).lead_count;
      const options = { message: entry.message, media: entry.media_type, modes: entry.modes };
      const error = await failure(send(shop, skill, payload(skill, entry, known), options), entry.code);
      assert.equal((await fixtures(name)).lead_count, leads, 'a refused request leaves no lead');

      const info = entryOf(error, ERROR_INFO);
      const typed = entryOf(error, AAP_ERROR);
      if (aap === null) {
        assert.equal(typed, undefined);
        assert.deepEqual([info.reason, info.domain], [entry.reason, 'a2a-protocol.org']);
      } else {
        assert.deepEqual([info.reason, info.domain], [aap, 'autoagentprotocol.org']);
        assert.deepEqual([typed.code, typed.retryable], [aap, entry.retryable]);
        assert.ok(error.message.includes(aap));
      }
      if (entry.names_extension) {
        const uri = CASES.contracts[name];
        assert.deepEqual(info.metadata, { extensionUri: uri, requiredHeader: 'A2A-Extensions' });
        assert.ok(error.message.includes(uri) && error.message.includes('A2A-Extensions'));
      }
      for (const member of entry.details ?? []) assert.ok(typed.details[member] > 0, member);
      if (entry.violations) {
        const fields = entryOf(error, BAD_REQUEST).fieldViolations.map((fault) => fault.field);
        assert.deepEqual(fields.sort(), entry.violations);
      }
      if (entry.errors) {
        const listed = typed.details.errors.map((fault) => [fault.instanceLocation, fault.keyword]);
        assert.deepEqual(Object.fromEntries(listed), entry.errors);
      }
    });
  }
}

const first = (stream) => stream.next();
const config = { taskId: 't-1', id: 'p-1', tenant: '' };
const message = { messageId: 'm-1', contextId: '', taskId: '', role: 1, parts: [], extensions: [], referenceTaskIds: [] };

// name, JSON-RPC code, capability the card must claim before the SDK sends the call at all, call
const OPERATIONS = [
  ['GetTask', -32004, null, (client, options) => client.getTask({ id: 't-1', tenant: '' }, options)],
  ['ListTasks', -32004, null, (client, options) => client.listTasks({ tenant: '', contextId: '' }, options)],
  ['CancelTask', -32004, null, (client, options) => client.cancelTask({ id: 't-1', tenant: '' }, options)],
  ['SendStreamingMessage', -32004, 'streaming', (client, options) => first(client.sendMessageStream({ message }, options))],
  ['SubscribeToTask', -32004, null, (client, options) => first(client.resubscribeTask({ id: 't-1', tenant: '' }, options))],
  ['GetExtendedAgentCard', -32004, 'extendedAgentCard', (client, options) => client.getAgentCard(options)],
  [
    'CreateTaskPushNotificationConfig',
    -32003,
    'pushNotifications',
    (client, options) => client.createTaskPushNotificationConfig({ ...config, url: 'http://127.0.0.1/hook', token: '' }, options),
  ],
  [
    'GetTaskPushNotificationConfig',
    -32003,
    'pushNotifications',
    (client, options) => client.getTaskPushNotificationConfig(config, options),
  ],
  [
    'ListTaskPushNotificationConfigs',
    -32003,
    'pushNotifications',
    (client, options) => client.listTaskPushNotificationConfig({ taskId: 't-1', tenant: '' }, options),
  ],
  [
    'DeleteTaskPushNotificationConfig',
    -32003,
    null,
    (client, options) => client.deleteTaskPushNotificationConfig(config, options),
  ],
];

for (const name of ['pinned', 'contract2']) {
  for (const extensions of [undefined, []]) {
    for (const [operation, code, claim, call] of OPERATIONS) {
      test(`${name}: ${operation}, extension ${extensions ? 'omitted' : 'activated'}`, async () => {
        const shop = await buyer(name, { extensions, claims: claim ? [claim] : [] });
        const error = await failure(call(shop.client, shop.options), code);
        const info = entryOf(error, ERROR_INFO);
        const reason = code === -32003 ? 'PUSH_NOTIFICATION_NOT_SUPPORTED' : 'UNSUPPORTED_OPERATION';
        assert.deepEqual([info.reason, info.domain], [reason, 'a2a-protocol.org']);
        assert.equal(entryOf(error, AAP_ERROR), undefined);
      });
    }
  }
}
