// catapult.mjs VIEWER FILE...: imports each FILE with the importer of Chrome's trace viewer (catapult), as Go's distribution has it in the HTML page
// VIEWER, and prints what it holds as JSON: threads with their slices [start in µs, duration, name, category, depth], counters, flows, asynchronous spans, warnings.
import {readFileSync} from 'node:fs';
import vm from 'node:vm';

const [viewer, ...files] = process.argv.slice(2);
// The page is one script, made of modules that begin alike. Those of the user interface fail here, as there is no document; importer and model
// don't need them.
const script = [...readFileSync(viewer, 'utf8').matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map((m) => m[1]).join('\n');
globalThis.global = globalThis;
globalThis.HTMLImportsLoader = {hrefToAbsolutePath: (path) => path};
globalThis.require = () => ({});
globalThis.isNode = true;
for (const module of script.split(/(?='use strict';)/)) {
  try { vm.runInThisContext(module); } catch (e) { if (e instanceof SyntaxError && module.includes('TraceEventImporter')) throw e; }
}
const answers = files.map((file) => {
  const model = new tr.Model();
  const options = new tr.importer.ImportOptions();
  options.showImportWarnings = false;
  new tr.importer.Import(model, options).importTraces([readFileSync(file, 'utf8')]);
  const answer = {threads: [], counters: [], flows: [], async: [], warnings: model.importWarnings.map((w) => w.message)};
  for (const process of Object.values(model.processes)) {
    for (const thread of Object.values(process.threads)) {
      const depth = new Map();
      const slices = thread.sliceGroup.slices.map((s) => {
        const d = s.parentSlice ? depth.get(s.parentSlice) + 1 : 0;
        depth.set(s, d);
        return [s.start * 1000, s.duration * 1000, s.title, s.category, d, s.args];
      });
      const nested = (list) => list.forEach((s) => {
        answer.async.push([s.start * 1000, s.duration * 1000, s.title, s.category, 0, s.args]);
        nested(s.subSlices ?? []);
      });
      nested([...thread.asyncSliceGroup.slices]);
      answer.threads.push({pid: process.pid, process: process.name ?? '', tid: thread.tid, name: thread.name, order: thread.sortIndex, slices});
    }
    for (const c of Object.values(process.counters)) {
      answer.counters.push({name: c.name, samples: c.series[0].samples.map((s) => [s.timestamp * 1000, s.value])});
    }
  }
  for (const f of model.flowEvents) answer.flows.push([f.startSlice?.title ?? '', f.endSlice?.title ?? '']);
  return answer;
});
process.stdout.write(JSON.stringify(answers));
