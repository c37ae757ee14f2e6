// Failures in full and one closing line for scripts; a skipped test or an empty run is a failure, never silence.
export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for await (const { type, data } of events) {
    if (type === 'test:fail') {
      failed += 1;
      yield `not ok: ${data.name}\n${data.details.error.cause?.stack ?? data.details.error.message}\n`;
    } else if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) {
      skipped += 1;
    } else if (type === 'test:pass') {
      passed += 1;
    } else if (type === 'test:stderr' || type === 'test:stdout') {
      yield data.message;
    }
  }
  yield `node: ${passed} passed, ${failed} failed, ${skipped} skipped\n`;
  if (skipped > 0 || passed === 0) process.exitCode = 1;
}
