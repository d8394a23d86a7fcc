// One portion of work for each line of input, answered by what came of it.
'use strict';
const crypto = require('crypto'), readline = require('readline'), zlib = require('zlib');

function fail(n) { if (n === 0) throw new RangeError('deep'); return 1 + fail(n - 1); }

class Shape { constructor(n) { this.n = n; } area() { return this.n; } }
class Square extends Shape { area() { return this.n * this.n; } }
class Ring extends Shape { area() { return super.area() * 3; } }

async function portion() {
  let seed = 42;
  const next = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff; return (seed >> 16) % n; };
  const words = [];
  for (let i = 0; i < 6000; i++) {
    let w = '';
    for (let k = 2 + next(7); k > 0; k--) w += String.fromCharCode(97 + next(8));
    words.push(w);
  }
  const count = new Map();
  for (const w of words) count.set(w, (count.get(w) || 0) + 1);
  const document = JSON.parse(JSON.stringify(words.map((w, i) => ({ w, i, third: i / 3 }))));
  const text = words.join(' ');
  const found = text.match(/(?:a|b)+[c-e]*(?=f)/g).concat(text.split(/g+h?/));
  let failed = 0;
  for (let i = 0; i < 300; i++) { try { fail(i % 40); } catch (e) { if (e instanceof RangeError) failed++; } }
  let area = 0;
  for (let i = 0; i < 30000; i++) area += (i % 3 ? new Square(i % 10) : new Ring(i)).area();
  const packed = await new Promise((ok, no) => zlib.deflate(text, (e, b) => e ? no(e) : ok(b)));
  const plain = await new Promise((ok, no) => zlib.inflate(packed, (e, b) => e ? no(e) : ok(b)));
  const key = await new Promise((ok, no) => crypto.pbkdf2('a', 'b', 2000, 32, 'sha256', (e, k) => e ? no(e) : ok(k)));
  const waited = await Promise.all(words.slice(0, 200).map(async (w) => { await null; return w.length; }));
  const sorted = [...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const big = (3n ** 400n) % 1000000007n;
  return crypto.createHash('sha256').update(JSON.stringify([
    sorted, document, found, failed, area, plain.toString(), key.toString('hex'), waited, String(big),
  ])).digest('hex');
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) console.log(await portion() + '\n~end');
})();
