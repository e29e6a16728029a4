// Drives many TypeScript clients of one SDK in one process. Each calls tools of the fake
// server one after the other until stdin ends, and is never told to come back.
//
//   node crowd.mjs --client sdk1 --url URL --transport streamable --clients 50 --file LEDGER
//
// A line on stdin is a step, and prints one JSON line: "progress" waits until each client has
// had a short and a long call answered that began after the step; "report" says what happened.
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { open } from "./sdks.mjs";

const { values: flags } = parseArgs({
  options: {
    client: { type: "string" },
    url: { type: "string" },
    transport: { type: "string" },
    clients: { type: "string" },
    file: { type: "string" },
    timeout: { type: "string", default: "5000" },
  },
});
// A machine that is busy may take long to start the gateway again.
const reconnectionOptions = { initialReconnectionDelay: 1000, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1, maxRetries: 60 };
const timeout = Number(flags.timeout);
const report = { answered: [], retryable: 0, notRetryable: 0, silent: 0, unsent: 0, errors: {}, openings: 0, slowest: 0 };
let step = 0; // counts the steps named progress
let stopped = false;

// one is one client. Its calls are named after it, so that the ledger tells them apart.
async function one(number) {
  const { client, transport, seen } = await open(flags.client, flags.url, flags.transport, undefined, { reconnectionOptions });
  await client.connect(transport, { timeout: 30_000 });
  await client.listTools(); // says which tools may run again
  const self = { done: { short: -1, long: -1 } };
  const options = flags.client === "sdk1" ? [undefined, { timeout }] : [{ timeout }];
  self.run = async () => {
    for (let n = 0; !stopped; n++) {
      const tool = (n + number) % 3 ? "look" : "record"; // look may run again
      const how = n % 2 ? "long" : "short";
      const name = `${tool} ${flags.client}-${flags.transport}-${number}-${n}`;
      const began = step;
      for (let again = true; again && !stopped; ) {
        again = false;
        const start = Date.now();
        try {
          await client.callTool({ name: tool, arguments: { file: flags.file, message: name, how } }, ...options);
          report.answered.push(name);
          self.done[how] = began;
        } catch (error) {
          const took = Date.now() - start;
          const text = `${error.code ?? ""} ${error.message}`.replace(/127\.0\.0\.1:\d+|[A-Z2-7]{8}\.[\w.-]+|"id":[^,]*,/g, "…").slice(0, 200);
          report.errors[text] = (report.errors[text] ?? 0) + 1;
          if (error.data?.retryable !== undefined) {
            report[error.data.retryable ? "retryable" : "notRetryable"]++;
            report.slowest = Math.max(report.slowest, took);
            again = error.data.retryable;
          } else if (took >= timeout) report.silent++;
          else report.unsent++;
          await delay(50);
        }
      }
    }
    if (seen.opening !== "initialize") throw new Error(`the first message was ${seen.opening}`);
  };
  return self;
}

const crowd = [];
for (let i = 0; i < Number(flags.clients); i++) crowd.push(await one(i));
const runs = crowd.map((client) => client.run());

const steps = {
  progress: async () => {
    const began = Date.now();
    const mine = ++step;
    while (!crowd.every(({ done }) => done.short >= mine && done.long >= mine)) await delay(20);
    return { ms: Date.now() - began };
  },
  report: async () => {
    stopped = true;
    await Promise.all(runs);
    return report;
  },
};
for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify({ ok: true, ...(await steps[line.trim()]()) }));
process.exit();
