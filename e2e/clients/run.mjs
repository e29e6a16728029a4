// Drives one TypeScript MCP client. Every step prints one JSON line; the exit
// code is 0 if all steps succeeded, else 1.
//
//   node run.mjs --client sdk1 --url http://127.0.0.1:8080/sse connect list 'call echo {"message":"hi"}'
//
// Without steps on the command line it reads them from stdin, a line each, which
// is how the Go tests use it.
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { names, open } from "./sdks.mjs";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    client: { type: "string", default: "sdk1" },
    url: { type: "string" },
    transport: { type: "string", default: "sse" },
    timeout: { type: "string", default: "30000" },
    // Declare sampling, elicitation and roots, and answer each with this name.
    answers: { type: "string" },
    // Log in at the issuer of the server's tokens.
    oauth: { type: "boolean", default: false },
  },
});
if (!flags.url || !names.includes(flags.client) || !["sse", "streamable"].includes(flags.transport)) {
  console.error(`usage: run.mjs --client ${names.join("|")} --url URL [--transport sse|streamable] [step…]`);
  process.exit(2);
}

const timeout = Number(flags.timeout);
const authProvider = flags.oauth ? (await import("./oauth.mjs")).user() : undefined;
const make = () => open(flags.client, flags.url, flags.transport, flags.answers, { authProvider });
let { client, transport, seen } = await make();
const answers = new Map(); // id -> messages, for the steps that use the transport alone
let endpoint; // the POST address when the last step ended

// until polls a condition that the SDKs give no event for.
async function until(what, condition) {
  for (const end = Date.now() + timeout; Date.now() < end; await delay(10)) {
    if (condition()) return;
  }
  throw new Error(`timed out: ${what}`);
}

const text = (result) => {
  const all = result.content.map((part) => part.text ?? "").join("");
  if (result.isError) throw Object.assign(new Error(all), { code: "isError" });
  return all;
};
// The second positional of callTool is a result schema in SDK 1, the options in SDK 2.
const options = (more) => (flags.client === "sdk1" ? [undefined, { timeout, ...more }] : [{ timeout, ...more }]);
const call = async (name, args, more) => text(await client.callTool({ name, arguments: args }, ...options(more)));

const steps = {
  connect: async () => {
    try {
      await client.connect(transport, { timeout });
    } catch (error) {
      if (!authProvider?.answer) throw error;
      await transport.finishAuth(authProvider.answer.get("code"), authProvider.answer.get("iss"));
      ({ client, transport, seen } = await make());
      await client.connect(transport, { timeout });
    }
    const server = client.getServerVersion();
    return { server: server?.name, protocol: transport._protocolVersion };
  },
  list: async () => ({ tools: (await client.listTools()).tools.map((tool) => tool.name) }),
  call: async (name, args) => ({ text: await call(name, args ?? {}) }),
  // burst calls the tool once for each element of the array, all at once.
  burst: async (name, all) => ({ texts: await Promise.all(all.map((args) => call(name, args))) }),
  // progress calls the tool and counts the progress that came before its answer. It
  // counts messages: the SDKs lose progress that comes in one read with the answer.
  progress: async (name, args) => {
    let count = 0;
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => {
      if (message.method === "notifications/progress") count++;
      onmessage(message, extra);
    };
    try {
      return { text: await call(name, args, { onprogress: () => {} }), count };
    } finally {
      transport.onmessage = onmessage;
    }
  },
  read: async ({ uri }) => ({ text: (await client.readResource({ uri })).contents.map((part) => part.text ?? "").join("") }),
  prompt: async (name, args) => ({
    text: (await client.getPrompt({ name, arguments: args })).messages.map((message) => message.content.text ?? "").join(""),
  }),
  // start and post use the transport without a client: nothing is initialized.
  start: async () => {
    transport.onmessage = (message) => answers.set(message.id, [...(answers.get(message.id) ?? []), message]);
    await transport.start();
  },
  post: async (message) => {
    await transport.send(message);
    await until(`answer to ${message.id}`, () => answers.has(message.id));
    return { answers: answers.get(message.id) };
  },
  // reconnected waits until the SDK has come back by itself.
  reconnected: async () => {
    const before = endpoint;
    await until("a new endpoint", () => transport._endpoint && transport._endpoint.href !== before);
  },
  close: async () => client.close(),
};

function describe(error) {
  return { name: error.name, code: error.code, message: error.message, data: error.data };
}

// parse splits "call echo {…}" into the verb and its arguments.
function parse(line) {
  const [, verb, name, json] = /^(\S+)\s*([\w-]*)\s*(.*)$/s.exec(line.trim());
  return { verb, args: [...(name ? [name] : []), ...(json ? [JSON.parse(json)] : [])] };
}

async function run(line) {
  const start = performance.now();
  let verb, args, result;
  try {
    ({ verb, args } = parse(line));
    if (!steps[verb]) throw new Error(`no step ${verb}`);
    result = { ok: true, ...(await steps[verb](...args)) };
  } catch (error) {
    result = { ok: false, error: describe(error) };
    process.exitCode = 1;
  }
  endpoint = transport._endpoint?.href;
  const ms = Math.round(performance.now() - start);
  console.log(JSON.stringify({ step: verb, ...result, ms, ...seen }));
}

const lines = positionals.length > 0 ? positionals : createInterface({ input: process.stdin });
for await (const line of lines) await run(line);
process.exit();
