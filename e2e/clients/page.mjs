// Uses the modules of the page without a browser. Arguments: the directory of the modules, and the URL of
// the demo server behind a gateway. Fails with what is wrong.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';

const [folder, url] = process.argv.slice(2);
const module = name => import(new URL(`${name}.js`, pathToFileURL(`${folder}/`)));
const { entries, asCurl, shell } = await module('connect');
const { events } = await module('events');
const { faults, settle, TooDeep, choices, unsafeInteger } = await module('schema');
const { withoutSecrets } = await module('secrets');
const { expand, variables } = await module('resources');
const { lossesOfTool, lossesOfAll } = await module('limits');
const { schemes } = await module('dom');
const { Wire } = await module('wire');
const { StreamableHTTP, HTTPSSE } = await module('transport');
const { Session, paced } = await module('session');

// What the gateway gives the page for each client is filled in: the links that install decode to the
// configuration, and every text has the URL and, if it is needed, a place for the token. What is JSON is valid.
const html = await (await fetch(url, { headers: { Accept: 'text/html' } })).text();
const { pastes, name: called } = JSON.parse(html.match(/id="about">(.*?)<\/script>/s)[1]);
assert.equal(called, 'mine', 'the page has the name of --name');
assert.ok(pastes.length > 15, `${pastes.length} clients`);
const at = 'https://gw.example.com/a\'b/mcp?x=1&$y@NAME@', name = 'a server';
for (const token of [false, true]) {
  const all = new Map(entries({ name, url: at, token, pastes }).map(entry => [entry.client, entry]));
  const json = client => JSON.parse(all.get(client).text);
  for (const { client, text, aboutToken, aboutProgram, install } of all.values()) {
    assert.ok(install === undefined || schemes.test(install), `the page has no links such as ${install}`);
    assert.equal(aboutProgram !== undefined, text.includes('/PATH/TO/'), `${client} says that the path has to be put in`);
    assert.ok(text.includes(at) || text.includes(JSON.stringify(at)) || text.includes(shell(at)), `${client} has the URL: ${text}`);
    assert.equal(/TOKEN|input:token/.test(text), token, `${client} has a token: ${text}`);
    assert.equal(aboutToken !== undefined, token, `${client} says what to do about the token`);
    assert.ok(!/@URL@|@NAME@(?!['"])/.test(text), `${client} is filled in: ${text}`);
  }
  const header = value => token ? { headers: { Authorization: `Bearer ${value}` } } : {};
  const cursor = new URL(all.get('Cursor').install);
  assert.equal(cursor.protocol + cursor.host + cursor.pathname, 'cursor:anysphere.cursor-deeplink/mcp/install');
  assert.equal(cursor.searchParams.get('name'), 'a-server');
  assert.deepEqual(JSON.parse(Buffer.from(cursor.searchParams.get('config'), 'base64').toString()), { url: at, ...header('${env:TOKEN}') });
  assert.deepEqual(json('Cursor').mcpServers['a-server'], { url: at, ...header('${env:TOKEN}') });
  const trae = new URL(all.get('Trae').install);
  assert.equal(trae.protocol + trae.host + trae.pathname, 'trae:trae.ai-ide/mcp-import');
  assert.equal(trae.searchParams.get('type') + trae.searchParams.get('name'), 'httpa-server');
  assert.deepEqual(JSON.parse(Buffer.from(trae.searchParams.get('config'), 'base64').toString()), { url: at, ...header('TOKEN') });
  const [scheme, query] = all.get('VS Code').install.split('?');
  assert.equal(scheme, 'vscode:mcp/install');
  const { name: installed, inputs, ...code } = JSON.parse(decodeURIComponent(query));
  assert.equal(installed, 'a-server');
  assert.deepEqual(code, { type: 'http', url: at, ...header('${input:token}') });
  assert.deepEqual(json('VS Code').servers['a-server'], code);
  assert.deepEqual(json('VS Code').inputs, inputs);
  assert.equal(inputs?.[0].id, token ? 'token' : undefined);
  assert.equal(all.get('Claude Code').text.startsWith(`claude mcp add --scope user --transport http a-server ${shell(at)}`), true);
}
// Where there is an issuer, clients that log in there have no token.
for (const { client, text } of entries({ name, url: at, token: true, logsIn: true, pastes })) {
  assert.equal(/TOKEN|input:token/.test(text), !['Claude Code', 'Cursor', 'VS Code', 'Gemini CLI', 'Qwen Code', 'Windsurf', 'opencode'].includes(client), client);
}
assert.equal(shell('a\'b; rm -rf $HOME'), '\'a\'\\\'\'b; rm -rf $HOME\'');
assert.equal(asCurl('http://h/mcp', { a: 'it\'s' }, true), 'curl http://h/mcp -H \'Content-Type: application/json\' -H "Authorization: Bearer $TOKEN" -d \'{"a":"it\'\\\'\'s"}\'');
// What is copied runs in a shell, whatever the arguments are.
const said = 'it\'s "$HOME" `pwd` \\ ü';
const ran = execFileSync('sh', ['-c', asCurl(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: said } } }, false)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
assert.equal(JSON.parse(ran.match(/\{.*\}/s)[0]).result.content[0].text, said);

// A stream of events is the same wherever it is cut.
const stream = '\u{feff}: hi\r\nid: 1\r\nevent: endpoint\r\ndata: /p\r\n\r\nretry: 1000\nid\ndata\n\ndata: a\rdata:  ü\r\rdata: lost';
const want = [['', '', 'hi'], ['endpoint', '/p', undefined, '1'], ['message', '', undefined, ''], ['message', 'a\n ü', undefined, '']];
const bytes = new TextEncoder().encode(stream);
for (let size = 1; size <= bytes.length; size++) {
  const got = [];
  const body = new ReadableStream({ start(c) { for (let i = 0; i < bytes.length; i += size) c.enqueue(bytes.slice(i, i + size)); c.close(); } });
  for await (const event of events(body)) got.push(event);
  assert.deepEqual(got.map(e => [e.event, e.data, e.comment, ...e.comment === undefined ? [e.id] : []].slice(0, 4)), want.map(w => w.length === 3 ? w : w), `in pieces of ${size}`);
}

// A line end that is cut in two is one.
const cut = [];
for await (const event of events(new ReadableStream({ start(c) { for (const part of ['data: a\r', '\n', '\ndata: b\n\n']) c.enqueue(new TextEncoder().encode(part)); c.close(); } }))) cut.push(event.data);
assert.deepEqual(cut, ['a', 'b']);

// Integers that JSON.parse rounds are found, and nothing else is.
for (const [text, found] of [['{"a":9007199254740993}', '9007199254740993'], ['[-9007199254740993]', '-9007199254740993'], ['{"9007199254740993":"\\"9007199254740993"}', undefined], ['[1.9007199254740993, 1e400, 1E-400, 9007199254740991]', undefined]]) {
  assert.equal(unsafeInteger(text), found, text);
}

const secret = { $defs: { key: { type: 'string', format: 'password' } }, properties: { a: {}, key: { $ref: '#/$defs/key' }, list: { items: { properties: { pin: { writeOnly: true } } } } } };
assert.deepEqual(withoutSecrets({ a: 1, key: 'x', list: [{ pin: 1, b: 2 }], c: 3 }, secret), { a: 1, list: [{ b: 2 }], c: 3 });
assert.deepEqual(withoutSecrets({ a: 1, key: 'x', list: [{ pin: 1, b: 2 }] }, secret, '…'), { a: 1, key: '…', list: [{ pin: '…', b: 2 }] });
// Whatever part of a schema calls it secret: a choice, what applies to all members, a place in a list, a schema that refers to itself.
const pin = { writeOnly: true };
for (const schema of [
  { anyOf: [{ type: 'null' }, { properties: { pin } }, { properties: { a: {} } }] }, { oneOf: [{ allOf: [{ properties: { pin } }] }] },
  { additionalProperties: pin, properties: { a: {} } }, { if: {}, then: { properties: { pin } } },
  { properties: { pin: { anyOf: [{ type: 'string' }, { format: 'password' }] } } }, { $ref: '#', properties: { pin } },
]) assert.deepEqual(withoutSecrets({ a: 1, pin: 2 }, schema), { a: 1 }, JSON.stringify(schema));
assert.deepEqual(withoutSecrets({ a: 1 }, { patternProperties: { '^p': pin } }), {}, 'no pattern of a server is run');
assert.deepEqual(withoutSecrets([1, 2, 3], { prefixItems: [{}, pin], items: {} }, '…'), [1, '…', 3]);
assert.deepEqual(withoutSecrets([1, 2, 3], { items: [{}, pin] }, '…'), [1, '…', 3]);
assert.deepEqual(withoutSecrets({ a: { a: { pin: 1, b: 2 } } }, { properties: { a: { $ref: '#' }, pin } }), { a: { a: { b: 2 } } });
for (const schema of [
  { dependentSchemas: { a: { properties: { pin } } } }, { dependencies: { a: { properties: { pin } }, pin: ['a'] } },
  { unevaluatedProperties: pin, properties: { a: {} } }, { $id: 'x', $ref: '#/$defs/b', $defs: { b: { properties: { pin } } } },
]) assert.deepEqual(withoutSecrets({ a: 1, pin: 2 }, schema), { a: 1 }, JSON.stringify(schema));
for (const schema of [{ contains: pin }, { unevaluatedItems: pin }, { items: [{}], additionalItems: pin }]) {
  assert.deepEqual(withoutSecrets({ a: 1, list: [1, 2] }, { properties: { list: schema } }, '…'), { a: 1, list: ['…', '…'] }, JSON.stringify(schema));
}
// If nobody can say what is secret, all is: a reference is no pointer within the document, or means what depends on the way to it.
for (const $defs of [{ key: { $anchor: 'key', ...pin } }, { key: { $id: 'key', ...pin } }, { key: { $dynamicAnchor: 'key', ...pin } }]) {
  for (const key of [{ $ref: '#key' }, { $ref: 'key' }, { $ref: 'https://a.example/key' }, { $ref: '#/$defs/none' }, { $ref: 7 }, { $dynamicRef: '#key' }, { $recursiveRef: '#' }]) {
    for (const schema of [{ $defs, properties: { key } }, { $defs, items: {}, anyOf: [{ properties: { key } }] }, { $defs, ...key }]) {
      assert.equal(withoutSecrets({ a: 1, key: 'x' }, schema, '…'), '…', JSON.stringify(schema));
      assert.equal(withoutSecrets({ a: 1, key: 'x' }, schema), undefined, JSON.stringify(schema));
    }
  }
}
const inner = { $id: 'https://a.example/inner', $defs: { key: pin }, properties: { key: { $ref: '#/$defs/key' } } };
assert.equal(withoutSecrets({ inner: { key: 'x' } }, { $defs: { key: {} }, properties: { inner } }, '…'), '…', 'a pointer in a document inside');
assert.deepEqual(withoutSecrets({ a: 1, b: 2 }, { properties: { a: {}, b: { $ref: '#/properties/a' }, c: { $ref: '#c' } } }), { a: 1, b: 2 }, 'what is not given is of no matter');

// What the wire keeps is bounded.
const large = new Wire();
for (let i = 0; i < 10; i++) large.add(true, 'POST', 'x'.repeat(5 << 20));
assert.equal(large.entries.length + large.dropped, 10);
assert.ok(large.entries.length <= 6 && large.held <= 32 << 20);

// A schema is settled as far as a form needs, also one that goes round in circles, and faults have their place.
const root = { $defs: { n: { type: 'integer', minimum: 1 }, loop: { $ref: '#/$defs/loop' } }, properties: { 'a/b~c': { $ref: '#/$defs/n' } } };
assert.deepEqual(settle({ $ref: '#/$defs/n', title: 'N' }, root), { type: 'integer', minimum: 1, title: 'N' });
assert.ok(settle({ $ref: '#/$defs/loop' }, root));
assert.deepEqual(settle({ anyOf: [{ type: 'null' }, { type: 'string' }], title: 'T' }, root), { type: 'string', title: 'T' });
assert.deepEqual(settle({ allOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: {} }, required: ['b'] }] }, root), { properties: { a: {}, b: {} }, required: ['a', 'b'] });
assert.deepEqual(choices({ oneOf: [{ const: 1, title: 'One' }, { const: 'x' }] }), [{ value: 1, title: 'One' }, { value: 'x', title: 'x' }]);
assert.deepEqual(faults({ 'a/b~c': 0 }, root).map(f => f.path), ['/a~1b~0c']);
assert.deepEqual(faults({}, { required: ['x y'] }), [{ path: '/x y', text: 'It is required.' }]);
assert.equal(faults({}, { pattern: '(' , $ref: 'http://far/' }), undefined, 'nobody can say');
assert.equal(faults(Array(1000).fill(''), { items: { minLength: 1 } }).length, 100);
assert.deepEqual(faults('2020-02-30', { format: 'date' }).length, 1);

/** @type {any} */
let many = { type: 'object' };
for (let i = 0; i < 30; i++) many = { allOf: [many, many] }; // 2^30 in all
assert.equal(choices({ enum: Array(1001).fill(1) }), undefined);
assert.equal(choices({ oneOf: Array(1001).fill({ const: 1 }) }), undefined);
const wide = { allOf: Array.from({ length: 200000 }, (_, i) => ({ properties: { [i]: {} }, required: [String(i)] })) };
const long = { $defs: Object.fromEntries(Array.from({ length: 20000 }, (_, i) => [i, { $ref: `#/$defs/${i + 1}` }])), $ref: '#/$defs/0' };
for (const schema of [many, wide, long]) assert.throws(() => settle(schema, schema), TooDeep);
for (const schema of [wide, long]) assert.deepEqual(withoutSecrets({ a: 1 }, schema, '…'), '…', 'nobody knows what is secret');
assert.equal(expand('x://{constructor}', {}), 'x://');
assert.deepEqual(variables('{{a}'), [{ name: 'a', required: true }]);
assert.equal(expand('x://{a}{+b}{?c,d}{/e*}', { a: 'a/b', b: 'a/b', c: '1 2', e: 'f' }), 'x://a%2Fba/b?c=1%202/f');
assert.deepEqual(variables('x://{a}{?c,d:3}'), [{ name: 'a', required: true }, { name: 'c', required: false }, { name: 'd', required: false }]);

const clients = [{ title: 'C', nameLength: 10, front: '%s_', longNames: 'drops it', description: 3, keywords: ['anyOf'], schemas: 'fails', tools: 1, descriptions: 5, over: 'drops the rest' }];
assert.equal(lossesOfTool({ name: 'abcdefg', description: 'four', inputSchema: { anyOf: [] } }, 'srv', clients).length, 3);
assert.equal(lossesOfTool({ name: 'abcdef', description: '🙂🙂🙂', inputSchema: {} }, 'srv', clients).length, 0);
assert.equal(lossesOfAll([{ description: 'abc' }, { description: 'abc' }], clients).length, 2);

// No data of a server breaks what makes texts of it, and no message the stream that it came on.
const strange = { toString: 1 };
assert.deepEqual(choices({ enum: [strange], enumNames: [strange] }).map(one => one.title), ['{"toString":1}']);
assert.equal(lossesOfTool({ name: strange }, 'srv', clients).length, 1);
const noted = new Wire(), receiving = new StreamableHTTP({ url, token: () => '', wire: noted, version: '' }), received = [];
receiving.onmessage = message => {
  received.push(message);
  if (message.id === 1) throw new Error('no use');
};
receiving.receive('event: message', '[{"id":1},{"id":2}]');
assert.equal(received.length, 2);
assert.match(noted.entries[0].note, /cannot use it: no use/);

// What is asked for often is done one at a time, and once more for all who asked meanwhile.
let runs = 0, atOnce = 0;
const often = paced(async () => {
  assert.equal(++atOnce, 1);
  runs++;
  await Promise.resolve();
  atOnce--;
}, 0);
const first = often();
for (let i = 0; i < 100; i++) often();
await first;
assert.equal(runs, 2);

// Each way to connect reaches the server, and the wire has what passed, without the token.
await Promise.all([[StreamableHTTP, true], [HTTPSSE, true], [HTTPSSE, false]].map(async ([Transport, initializes]) => {
  const wire = new Wire(), session = new Session(new Transport({ url, token: () => 'secret-token', wire, version: '2025-11-25' }), wire, initializes);
  const ready = new Promise((resolve, reject) => { session.onstate = () => { if (session.state === 'ready') resolve(); else if (session.state === 'failed') reject(session.error); }; });
  await session.start();
  await ready;
  assert.equal(session.server.serverInfo.name, 'sse-server-demo');
  assert.deepEqual((await session.all('tools/list', 'tools')).map(tool => tool.name), ['echo', 'sleep']);
  assert.equal((await session.request('tools/call', { name: 'echo', arguments: { message: 'hi' } })).content[0].text, 'hi');
  const reports = [];
  await session.request('tools/call', { name: 'sleep', arguments: { seconds: 1.5 } }, { onprogress: at => reports.push(at.progress) });
  assert.equal(reports[0], 1);
  const cancelling = new AbortController(), call = session.request('tools/call', { name: 'sleep', arguments: { seconds: 60 } }, { signal: cancelling.signal });
  setTimeout(() => cancelling.abort(), 100);
  await assert.rejects(call, { name: 'AbortError' });
  await assert.rejects(session.request('none/such'), { code: -32601 });
  session.close();
  await assert.rejects(session.request('ping'));
  const kinds = wire.entries.map(entry => entry.kind);
  const wanted = Transport === HTTPSSE ? ['GET', 'event: endpoint', 'POST', '202'] : ['POST', 'JSON', 'GET', 'DELETE', 'event: message'];
  if (!initializes) wanted.push('event: connection', 'event: mcp-response');
  for (const kind of wanted) assert.ok(kinds.includes(kind), `the wire has ${kind}: ${kinds}`);
  assert.ok(!JSON.stringify(wire.entries).includes('secret-token'));
}));

// A start that fails says why.
const wire = new Wire(), lost = new Session(new StreamableHTTP({ url: `${url}/none`, token: () => '', wire, version: '2025-11-25' }), wire, true);
await lost.start();
assert.equal(lost.state, 'failed');
assert.match(lost.error.message, /no such route/);

// A list ends with an empty cursor, and with one that comes again.
for (const [cursors, want] of [[[undefined], 1], [['a', ''], 2], [['a'], 2], [['a', 'b', 'a'], 3]]) {
  let asked = 0;
  const request = async () => ({ tools: [{}], nextCursor: cursors[Math.min(asked++, cursors.length - 1)] });
  const listing = Object.assign(Object.create(Session.prototype), { request });
  assert.equal((await listing.all('tools/list', 'tools')).length, want, `pages with the cursors ${cursors}`);
}

// A 401 of any request is the failure of the session, and a server without a stream of its own is well.
const real = globalThis.fetch;
const answers = { initialize: 1, 'notifications/initialized': 202, 'tools/list': 401 }, versions = [], gets = [];
globalThis.fetch = async (_, init) => {
  if (init.method !== 'POST') {
    gets.push(init.method);
    return new Response('', { status: 405 });
  }
  const { id, method } = JSON.parse(init.body), status = answers[method];
  versions.push(init.headers.get('MCP-Protocol-Version'));
  if (status !== 1) return new Response(status === 202 ? null : '{}', { status, headers: { 'WWW-Authenticate': 'Bearer' } });
  return new Response(JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18', capabilities: {} } }), { headers: { 'Content-Type': 'application/json' } });
};
const expiring = new Session(new StreamableHTTP({ url: 'http://gateway.example/mcp', token: () => 'old', wire: new Wire(), version: '2025-11-25' }), new Wire(), true);
await expiring.start();
assert.equal(expiring.state, 'ready');
assert.deepEqual(versions, [null, '2025-06-18'], 'initialized says the revision');
await new Promise(resolve => setImmediate(resolve));
assert.equal(expiring.state, 'ready');
assert.deepEqual(gets, [undefined]);
await assert.rejects(expiring.request('tools/list'), { status: 401 });
assert.equal(expiring.state, 'failed');
assert.equal(expiring.error.status, 401);
globalThis.fetch = real;

// What is known of a server from before does not say that it runs. A call starts it, and says how it is.
/** @type {(method: string, id: number) => any} */
let answer;
globalThis.fetch = async (_, init) => {
  if (init.method !== 'POST') return new Response('', { status: 405 });
  const { id, method } = JSON.parse(init.body);
  if (id === undefined) return new Response(null, { status: 202 });
  const headers = { 'Content-Type': 'application/json', ...method === 'initialize' && { 'X-Connection-State': 'resting' } };
  return new Response(JSON.stringify({ jsonrpc: '2.0', id, ...await answer(method, id) }), { headers });
};
const working = () => ({ result: { protocolVersion: '2025-11-25', capabilities: {} } });
const failing = () => ({ error: { code: -32603, message: 'initialization failed: the database is down', data: { type: 'initialization_error', reason: 'start_failed' } } });
const known = new Session(new StreamableHTTP({ url: 'http://gateway.example/mcp', token: () => '', wire: new Wire(), version: '2025-11-25' }), new Wire(), true), states = [];
known.onstate = () => states.push(known.state);
answer = working;
await known.start();
await known.request('tools/list');
assert.deepEqual(states.splice(0), ['starting', 'resting'], 'a list does not start the server');
answer = failing;
await assert.rejects(known.request('tools/call'), /the database is down/);
assert.deepEqual(states.splice(0), ['starting', 'failed']);
assert.match(known.error.message, /the database is down/);
assert.ok(known.takesCalls, 'the next call starts it again');
answer = () => ({ error: { code: -32603, message: 'too many wait', data: { reason: 'gate_full' } } });
await assert.rejects(known.request('tools/call'));
assert.equal(known.state, 'starting', 'an error of the gateway does not say how the server is');
answer = () => new Promise(() => {});
const giving = new AbortController(), given = known.request('tools/call', {}, { signal: giving.signal });
giving.abort();
await assert.rejects(given, { name: 'AbortError' });
assert.equal(known.state, 'resting', 'nobody waits for the start');
states.length = 0;
answer = () => ({ error: { code: -32602, message: 'no such tool' } });
await assert.rejects(known.request('tools/call'));
assert.deepEqual(states.splice(0), ['starting', 'ready'], 'an error of the server shows that it runs');
answer = failing;
await assert.rejects(known.request('tools/call'));
assert.deepEqual(states.splice(0), ['failed'], 'it may end, and not start again');
answer = working;
await known.request('tools/call');
assert.deepEqual(states.splice(0), ['starting', 'ready']);

// A gateway that was started again goes on with a session, but knows nothing of it: the page initializes again.
const transport = new StreamableHTTP({ url: 'http://gateway.example/mcp', token: () => '', wire: new Wire(), version: '2025-11-25' });
const going = new Session(transport, new Wire(), true), sent = [];
let opens = 'one', newOnes = 0;
going.onnew = () => newOnes++;
globalThis.fetch = async (_, init) => {
  if (init.method !== 'POST') return new Response('', { status: 405 });
  const { id, method, params } = JSON.parse(init.body);
  sent.push(`${init.headers.get('Mcp-Session-Id')} ${method}${params?.capabilities ? ` ${Object.keys(params.capabilities)}` : ''}`);
  if (id === undefined) return new Response(null, { status: 202 });
  return new Response(JSON.stringify({ jsonrpc: '2.0', id, ...working() }), { headers: { 'Content-Type': 'application/json', ...opens && { 'Mcp-Session-Id': opens } } });
};
await going.start();
assert.deepEqual(sent.splice(0), ['null initialize elicitation', 'one notifications/initialized']);
opens = '';
await going.again(transport);
assert.deepEqual([...sent.splice(0), newOnes], ['one initialize elicitation', 0], 'the gateway knows the session');
opens = 'one';
transport.lastOwn = '1-7';
await going.again(transport);
assert.deepEqual([...sent.splice(0), newOnes, transport.lastOwn], ['one initialize elicitation', 'one notifications/initialized', 1, '']);

// A request that does not reach the gateway fails alone. That the session is gone ends it, and another try may
// find a gateway.
globalThis.fetch = async () => { throw new TypeError('Failed to fetch'); };
await assert.rejects(going.request('tools/call'), { message: 'No answer from http://gateway.example/mcp: is sse-server running?' });
assert.ok(going.takesCalls && !going.isLost);
globalThis.fetch = async () => new Response('{}', { status: 404 });
await assert.rejects(going.request('tools/call'), { status: 404 });
assert.ok(going.isLost && !going.takesCalls);
globalThis.fetch = async () => { throw new TypeError('Failed to fetch'); };
const early = new Session(new StreamableHTTP({ url: 'http://gateway.example/mcp', token: () => '', wire: new Wire(), version: '2025-11-25' }), new Wire(), true);
await early.start();
assert.ok(early.isLost, 'there was no gateway to begin with');
assert.ok(!lost.isLost, 'what the gateway refuses is refused again');
globalThis.fetch = real;

// What the head says: of a pseudo-version of Go the commit.
const { versionOf } = await module('head');
for (const [version, short] of [['v0.0.0-20261128094108-98093310abcd', '98093310abcd'], ['v1.2.4-0.20261128094108-98093310abcd+dirty', '98093310abcd'], ['3.1.0', '3.1.0'], ['v1.2.3-rc.1', 'v1.2.3-rc.1']]) {
  assert.equal(versionOf(version), short);
}

// A form keeps a value if nothing of it is lost.
const { keeps } = await module('form');
for (const [made, value, isKept] of [
  [{ a: 1, b: '' }, { a: 1 }, true], [{ a: 1 }, { a: 1, zzz: 1 }, false], [{ a: { b: 1 } }, { a: { b: 1, c: 2 } }, false],
  [{ a: [1, 2] }, { a: [2, 1] }, false], [{ toString: 1 }, {}, true], [{}, { toString: 1 }, false],
]) assert.equal(keeps(made, value), isKept, JSON.stringify([made, value]));

// What the validator says is in words for people.
for (const [value, schema, text] of [
  [[], { minItems: 1 }, 'Its length is 0, and has to be at least 1.'], [[1, 2], { maxItems: 1 }, 'Its length is 2, and may be at most 1.'],
  ['a', { minLength: 2 }, 'Its length is 1, and has to be at least 2.'], ['abc', { maxLength: 2 }, 'Its length is 3, and may be at most 2.'],
  ['a', { format: 'email' }, 'It is not of the format email.'], ['a', { pattern: 'b' }, 'It is not of the form that the server wants.'],
  [0, { minimum: 1 }, 'It is 0, and has to be at least 1.'], [2, { maximum: 1 }, 'It is 2, and may be at most 1.'],
  [3, { exclusiveMinimum: 3 }, 'It is 3, and has to be above 3.'], [51, { exclusiveMaximum: 51 }, 'It is 51, and has to be below 51.'],
  ['a', { type: 'integer' }, 'It is of the type string, and has to be integer.'], [[1, 1], { uniqueItems: true }, 'It has the same entry twice.'],
]) assert.deepEqual(faults(value, schema).map(fault => fault.text), [text]);
