// Bundles src into dist, or with --test the unit tests into a temporary folder
// and runs them. What it writes depends on nothing but the sources and the
// locked version of esbuild.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const common = { absWorkingDir: here, bundle: true, target: "es2022", charset: "utf8", logLevel: "warning" };

if (process.argv.includes("--test")) {
  const folder = mkdtempSync(path.join(tmpdir(), "callreel-page-"));
  try {
    const entryPoints = readdirSync(path.join(here, "test")).filter((f) => f.endsWith(".test.ts")).map((f) => `test/${f}`);
    await build({ ...common, entryPoints, outdir: folder, platform: "node", format: "esm", outExtension: { ".js": ".mjs" } });
    const files = readdirSync(folder).map((f) => path.join(folder, f));
    process.exitCode = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
} else {
  // --outdir FOLDER writes elsewhere, for the check.
  const at = process.argv.indexOf("--outdir");
  const dist = path.resolve(at > 0 ? process.argv[at + 1] : path.join(here, "dist"));
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(path.join(dist, "assets"), { recursive: true });
  await build({
    ...common,
    entryPoints: { app: "src/main.ts", load: "src/load.worker.ts" },
    outdir: path.join(dist, "assets"),
    format: "esm",
    minify: true,
    legalComments: "inline",
  });
  await build({ ...common, entryPoints: { app: "src/app.css" }, outdir: path.join(dist, "assets"), minify: true });
  for (const [from, to] of [["src/index.html", "index.html"], ["NOTICE.txt", "NOTICE.txt"]]) cpSync(path.join(here, from), path.join(dist, to));
}
