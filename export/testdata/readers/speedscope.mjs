// speedscope.mjs [--only-import] FILE...: imports each FILE with speedscope's own importer and prints what it holds as JSON: profiles with their calls in order,
// [start, duration, name, file, depth]; of sums (pprof, folded) only the weights by stack. With --only-import it prints how many profiles there are.
import {readdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {basename, dirname, join} from 'node:path';
import vm from 'node:vm';

console.log = console.error; // what it says must not come between the answers
const release = join(dirname(createRequire(import.meta.url).resolve('speedscope/package.json')), 'dist', 'release');
let app = readFileSync(join(release, readdirSync(release).find((f) => /^speedscope-.*\.js$/.test(f))), 'utf8');
// The application is one function: instead of its page, in its last statements, its importer is asked for.
const [, module] = /\$l\((\w+),\{[^}]*importProfilesFromArrayBuffer:/.exec(app);
const [, init] = new RegExp(`=>\\((\\w+)\\(\\),${module}\\)`).exec(app);
const end = app.lastIndexOf('console.log(`speedscope v');
if (end < 0) throw new Error('speedscope has no end as expected');
app = app.slice(0, end) + `globalThis.speedscope=(${init}(),${module})})();`;
const nothing = new Proxy(function() {}, {get: (_, key) => key === Symbol.toPrimitive ? () => '' : nothing, apply: () => nothing, set: () => true});
Object.assign(globalThis, {window: globalThis, document: nothing, localStorage: nothing, matchMedia: () => nothing, addEventListener() {}, location: {hash: '', protocol: 'http:'}});
vm.runInThisContext(app);

const words = process.argv.slice(2), onlyImport = words[0] === '--only-import';
const answers = [];
for (const file of onlyImport ? words.slice(1) : words) {
  const data = readFileSync(file);
  const group = await speedscope.importProfilesFromArrayBuffer(basename(file), data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
  if (onlyImport) {
    process.stdout.write(`${group.profiles.length}\n`);
    continue;
  }
  answers.push({name: group.name, profiles: group.profiles.map((p) => {
    const calls = [], open = [];
    p.forEachCall((node, at) => {
      open.push(calls.push([at, 0, node.frame.name, node.frame.file ?? '', open.length]) - 1);
    }, (node, at) => {
      const call = calls[open.pop()];
      if (call[2] !== node.frame.name) throw new Error(`${node.frame.name} ends inside of ${call[2]}`);
      call[1] = at - call[0];
    });
    return {name: p.getName(), unit: p.getWeightUnit(), total: p.getTotalWeight(), calls};
  })});
}
if (!onlyImport) process.stdout.write(JSON.stringify(answers));
