// A server whose names are HTML.
import { createInterface } from 'node:readline';

const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: '<b>hostile</b>', version: '<i>1</i>' } },
  'tools/list': { tools: [{ name: '<img src=x>', description: '<script>hacked()</script>', inputSchema: { type: 'object' } }] },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
}
