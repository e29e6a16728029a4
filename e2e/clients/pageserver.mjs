// An MCP server on stdin and stdout that has something of each kind for the page in the browser. With the
// argument hostile, all that it says is markup, links that run code, and schemas that lie. With deep, its
// schemas have no end, or take for ever. With workshop, its tools are over the limits of clients, ask for each
// kind of value, log, and end the server.
import { createInterface } from 'node:readline';
import { crc32, deflateSync } from 'node:zlib';

const evil = '<img src=x onerror=hacked()><script>hacked()</script><b>bold</b>"\'>';
const link = 'javascript:hacked()';
const dot = png(96, 144, (x, y) => y % 24 < 12 - x / 12 ? [18, 87, 150] : [120 + x, 190, 220 - y / 2]).toString('base64');
const silence = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==';
const isHostile = process.argv.at(-1) === 'hostile';

const shop = {
  serverInfo: { name: 'bookshop', title: 'Bookshop', version: '3.1.0' },
  instructions: 'Find books, look at their covers, and order them.',
  tools: [
    {
      name: 'find_books', title: 'Find books', description: 'Finds books by words of their title, newest first.',
      annotations: { readOnlyHint: true, idempotentHint: true },
      inputSchema: {
        type: 'object', required: ['words', 'limit'], additionalProperties: false,
        properties: {
          words: { type: 'string', description: 'Words of the title', minLength: 2, examples: ['sea'] },
          limit: { type: 'integer', description: 'How many at most', minimum: 1, maximum: 50, default: 10 },
          genre: { type: 'string', enum: ['novel', 'poetry', 'science'] },
          inStock: { type: 'boolean', description: 'Only those that can be sent today' },
          since: { type: 'string', format: 'date', title: 'Published since' },
          authors: { type: 'array', items: { type: 'string' }, description: 'Any of these' },
          price: { type: 'object', description: 'In euros', properties: { from: { type: 'number', minimum: 0 }, to: { type: 'number', exclusiveMaximum: 1000 } } },
          more: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'integer' } }], description: 'Whatever' },
        },
      },
      outputSchema: { type: 'object', required: ['books'], properties: { books: { type: 'array', items: { type: 'object', required: ['title', 'price'], properties: { title: { type: 'string' }, price: { type: 'number' } } } } } },
    },
    { name: 'cover', title: 'Show a cover', description: 'Returns the cover of a book, and how it sounds.', annotations: { readOnlyHint: true }, inputSchema: { type: 'object', properties: {} } },
    { name: 'restock', title: 'Restock', description: 'Counts the shelves, with progress, until it is cancelled.', inputSchema: { type: 'object', properties: { shelves: { type: 'integer', default: 3 } } } },
    { name: 'order', title: 'Order a book', description: 'Asks for the address.', inputSchema: { type: 'object', properties: {} } },
    { name: 'remove_book', title: 'Remove a book', description: 'Removes a book for good.', annotations: { destructiveHint: true }, inputSchema: { type: 'object', required: ['title'], properties: { title: { type: 'string' } } } },
    { name: 'quote', title: 'Quote', description: 'Returns a text.', annotations: { readOnlyHint: true }, inputSchema: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } } },
    { name: 'fail', description: 'Reports an error.', inputSchema: { type: 'object' } },
    { name: 'lie', description: 'Returns what its output schema does not allow.', inputSchema: { type: 'object' }, outputSchema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } },
  ],
  prompts: [{ name: 'review', title: 'Review a book', description: 'Asks for a review.', arguments: [{ name: 'title', description: 'Of the book', required: true }] }],
  resources: [{ uri: 'shop://hours', name: 'hours', title: 'Opening hours', mimeType: 'text/plain' }],
  templates: [{ uriTemplate: 'shop://books/{id}{?part}', name: 'book', title: 'A book' }],
};

const hostile = {
  serverInfo: { name: evil, title: evil, version: evil },
  instructions: evil,
  tools: [
    { name: evil, title: evil, description: evil.repeat(300), annotations: { title: evil },
      inputSchema: { type: 'object', required: [evil, 7], properties: {
        [evil]: { type: 'string', title: evil, description: evil, default: evil, pattern: evil, format: '__proto__' },
        __proto__: { type: 'string' }, constructor: { type: 'object', properties: { toString: { type: 'array', items: { $ref: '#' } } } },
        enumeration: { enum: [evil, { toString: evil }], enumNames: [evil] }, list: { type: 'array', items: { const: evil } },
        loop: { $ref: '#/properties/loop' }, far: { $ref: 'http://192.0.2.1/schema' }, text: 'no schema', nothing: null,
      } }, outputSchema: { type: 'object', properties: { a: { pattern: '(' } } } },
    { name: 'no-schema' }, { name: 7, inputSchema: [] }, 'no tool', null,
  ],
  prompts: [{ name: evil, title: evil, description: evil, arguments: [{ name: evil, description: evil }, null, 'x'] }],
  resources: [{ uri: link, name: evil, title: evil, description: evil, mimeType: evil }, { uri: `data:text/html,${evil}`, name: evil }],
  templates: [{ uriTemplate: `${link}{${evil}}`, name: evil }],
};

let multiplied = { type: 'object', properties: { a: { type: 'string' } } };
for (let i = 0; i < 12; i++) multiplied = { allOf: Array(8).fill({ $ref: '#/$defs/inner' }), $defs: { inner: multiplied } };
const endless = (name, inputSchema, outputSchema) => ({ name, annotations: { readOnlyHint: true }, inputSchema, outputSchema });
const deep = {
  ...shop, prompts: [], resources: [], templates: [],
  tools: [
    endless('tree', { type: 'object', required: ['name'], properties: {
      name: { type: 'string', default: 'root' }, kin: { type: 'object', properties: { left: { $ref: '#' }, right: { $ref: '#' } } }, children: { type: 'array', items: { $ref: '#' } } } }),
    endless('wide', { allOf: Array.from({ length: 20000 }, (_, i) => ({ properties: { [`a${i}`]: { type: 'string' } }, required: [`a${i}`] })) }),
    endless('multiplied', { type: 'object', properties: Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`a${i}`, multiplied])), $defs: multiplied.$defs }),
    endless('pattern', { type: 'object', properties: { text: { type: 'string', pattern: '^(a|a)+$', default: `${'a'.repeat(60)}!` } } }, { type: 'object', properties: { text: { pattern: '^(a|a)+$' } } }),
    endless('sign_in', { type: 'object', required: ['user', 'key'], properties: { user: { type: 'string' }, key: { type: 'string', format: 'password' }, pins: { type: 'array', items: { type: 'string', writeOnly: true } } } }),
    endless('blobs', { type: 'object' }), endless('log_in_first', { type: 'object' }),
    endless('choices', { type: 'object', properties: { one: { enum: Array.from({ length: 100000 }, (_, i) => i) } } }),
  ],
};
const workshop = {
  ...shop, serverInfo: { name: 'workshop', version: '1' }, prompts: [], resources: [], templates: [],
  tools: [
    { name: 'look', annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: true }, inputSchema: { type: 'object' } },
    { name: 'burn', annotations: { destructiveHint: true, idempotentHint: true }, inputSchema: { type: 'object' } },
    { name: `saw_${'a'.repeat(60)}`, description: `Saws. ${'It saws on. '.repeat(700)}`, inputSchema: { type: 'object', anyOf: [{ required: ['left'] }, { required: ['right'] }] } },
    { name: 'measure', description: 'Asks for a value of each kind.', inputSchema: { type: 'object' } },
    { name: 'report', description: 'Logs.', inputSchema: { type: 'object' } },
    { name: 'cut', annotations: { readOnlyHint: true }, inputSchema: { type: 'object', required: ['boards'], properties: {
      boards: { type: 'array', items: { type: 'object', required: ['wood'], properties: { wood: { type: 'string', minLength: 2 }, screws: { type: 'integer', exclusiveMinimum: 3, maximum: 9 } } } },
      begin: { type: 'string', format: 'time' },
    } } },
    { name: 'break', description: 'Ends the server.', annotations: { readOnlyHint: false }, inputSchema: { type: 'object' } },
    ...Array.from({ length: 35 }, (_, i) => ({ name: `nail_${i}`, inputSchema: { type: 'object' } })),
  ],
};
const all = { hostile, deep, workshop };
const self = all[process.argv.at(-1)] ?? shop;

// png returns an image of the colours that at gives.
function png(width, height, at) {
  const chunk = (kind, data) => {
    const all = Buffer.concat([Buffer.alloc(4), Buffer.from(kind), data, Buffer.alloc(4)]);
    all.writeUInt32BE(data.length, 0);
    all.writeUInt32BE(crc32(all.subarray(4, -4)), all.length - 4);
    return all;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const rows = Array.from({ length: height }, (_, y) => Buffer.from([0, ...Array.from({ length: width }, (_, x) => at(x, y)).flat()]));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.concat(rows))), chunk('IEND', Buffer.alloc(0))]);
}

let asked = 0, counted = 0, subscribed = '';
const waiting = new Map(), running = new Map();
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const notify = (method, params) => send({ method, params });
const ask = (method, params) => new Promise(resolve => { waiting.set(++asked, resolve); send({ id: asked, method, params }); });
const text = all => ({ content: [{ type: 'text', text: all }] });

async function call({ name, arguments: args, _meta }, id) {
  if (isHostile) {
    await ask('elicitation/create', { message: evil, requestedSchema: { type: 'object', properties: { [evil]: { type: 'string', title: evil, description: evil } } } });
    await ask('elicitation/create', { mode: 'url', elicitationId: '1', message: evil, url: link });
    notify('notifications/message', { level: evil, logger: evil, data: { [evil]: evil } });
    notify('notifications/progress', { progressToken: _meta?.progressToken, progress: evil, total: -1, message: evil });
    return {
      content: [
        { type: 'text', text: evil }, { type: 'text', text: JSON.stringify({ [evil]: evil, __proto__: evil }) },
        { type: 'image', data: '"><script>hacked()</script>', mimeType: 'image/png' }, { type: 'image', data: Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="hacked()"/>`).toString('base64'), mimeType: 'image/svg+xml' },
        { type: 'image', data: dot, mimeType: 'text/html' }, { type: 'audio', data: dot, mimeType: `audio/wav"><script>` },
        { type: 'resource_link', uri: link, name: evil, title: evil, description: evil }, { type: 'resource', resource: { uri: link, text: evil, mimeType: evil } },
        { type: 'resource', resource: { uri: `data:text/html,${evil}`, blob: dot, mimeType: 'text/html' } }, { type: evil, html: evil }, null, 'text',
      ],
      structuredContent: { [evil]: evil, a: evil },
    };
  }
  switch (name) {
    case 'find_books': {
      const books = [{ title: 'The Sea, the Sea', price: 12.5 }, { title: 'Sea of Poppies', price: 9.9 }];
      return { content: [{ type: 'text', text: JSON.stringify({ books }) }], structuredContent: { books }, _meta: { got: args } };
    }
    case 'cover': return { content: [
      { type: 'text', text: '# The Sea, the Sea\n\n*A cover*' }, { type: 'image', data: dot, mimeType: 'image/png' }, { type: 'audio', data: silence, mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'https://books.example/sea', name: 'sea', title: 'The Sea, the Sea' },
      { type: 'resource', resource: { uri: 'shop://books/1', mimeType: 'text/plain', text: 'Charles Arrowby leaves London.' } },
    ] };
    case 'restock':
      for (let shelf = 1; !running.get(id)?.cancelled; shelf++) {
        if (shelf % 2 === 0) { // its definition changes while it runs
          self.tools[2].description = `Counts the shelves, for the time ${++counted}, with progress, until it is cancelled.`;
          notify('notifications/tools/list_changed');
        }
        if (shelf > args.shelves) return text(`counted ${args.shelves} shelves`);
        notify('notifications/progress', { progressToken: _meta?.progressToken, progress: shelf, total: args.shelves, message: `shelf ${shelf}` });
        await new Promise(resolve => setTimeout(resolve, 200));
      }
      return text('cancelled');
    case 'order': {
      const answer = await ask('elicitation/create', { message: 'Where shall it go?', requestedSchema: {
        type: 'object', required: ['street'], properties: { street: { type: 'string', title: 'Street', minLength: 3 }, wrapped: { type: 'boolean', title: 'As a present', default: false } } } });
      notify('notifications/message', { level: 'warning', logger: 'orders', data: `the answer: ${answer.result?.action}` });
      return text(JSON.stringify(answer.result ?? answer.error));
    }
    case 'quote': return text(args.text);
    case 'remove_book': return text(`removed ${args.title}`);
    case 'log_in_first': throw { code: -32042, message: 'not logged in', data: { elicitations: [
      { mode: 'url', elicitationId: '1', url: 'https://books.example/login', message: 'Log in to the shop.' }, { url: link }, null] } };
    case 'blobs': return { content: [['text/plain', 'Bücher'], ['application/zip', 'PK'], ['text/plain', '\xff', 'latin1']].map(([mimeType, data, coding]) => (
      { type: 'resource', resource: { uri: 'shop://books/the sea?.zip', mimeType, blob: Buffer.from(data, coding).toString('base64') } })) };
    case 'pattern': return { content: [], structuredContent: args };
    case 'tree': case 'multiplied': case 'sign_in': return text(JSON.stringify(args));
    case 'look': return text('all is there');
    case 'cut': return { content: [{ type: 'resource_link', uri: 'shop://boards', name: 'boards' }] };
    case 'measure': return text(JSON.stringify((await ask('elicitation/create', { message: 'What shall be made?', requestedSchema: {
      type: 'object', required: ['day', 'size', 'gift', 'copies', 'note'], properties: {
        note: { type: 'string', title: 'Note' },
        day: { type: 'string', format: 'date' }, moment: { type: 'string', format: 'date-time' }, mail: { type: 'string', format: 'email' },
        size: { type: 'string', enum: ['S', 'L'], enumNames: ['small', 'large'] },
        colour: { type: 'string', oneOf: [{ const: '#f00', title: 'Red' }, { const: '#00f', title: 'Blue' }] },
        extras: { type: 'array', items: { type: 'string', enum: ['ribbon', 'card'] }, maxItems: 1 },
        gift: { type: 'boolean' }, wrapped: { type: 'boolean' }, copies: { type: 'integer', minimum: 1, maximum: 5 }, price: { type: 'number', minimum: 0.5, default: 1.5 },
      } } })).result));
    case 'report':
      for (const [level, logger, data] of [['info', 'saw', 'the blade is new'], ['error', 'saw', 'the blade is dull'], ['error', 'glue', { state: 'dry' }]]) notify('notifications/message', { level, logger, data });
      return text('reported');
    case 'break':
      process.stderr.write('the bench has collapsed\n');
      process.exit(3);
    case 'fail': return { isError: true, ...text('the shelf is empty') };
    case 'lie': return { content: [], structuredContent: { n: 'many' } };
  }
  throw { code: -32602, message: `there is no tool ${name}` };
}

const methods = {
  initialize: () => ({ protocolVersion: '2025-11-25', serverInfo: self.serverInfo, instructions: self.instructions,
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, logging: {}, completions: {} } }),
  ping: () => ({}),
  'tools/list': () => ({ tools: self.tools }),
  'tools/call': call,
  'prompts/list': () => ({ prompts: self.prompts }),
  'prompts/get': ({ arguments: args }) => isHostile ? { description: evil, messages: [{ role: evil, content: { type: 'text', text: evil } }, null, { role: 'user' }] }
    : { messages: [{ role: 'user', content: { type: 'text', text: `Review ${args.title}, please.` } }] },
  'completion/complete': ({ argument }) => ({ completion: { values: isHostile ? [evil, 7, null] : ['The Sea, the Sea', 'Sea of Poppies'].filter(title => title.toLowerCase().includes(argument.value.toLowerCase())) } }),
  'resources/list': () => ({ resources: self.resources }),
  'resources/templates/list': () => ({ resourceTemplates: self.templates }),
  'resources/read': ({ uri }) => isHostile ? { contents: [{ uri, text: evil, mimeType: evil }, { uri: link, blob: 'no base64', mimeType: 'image/png' }, null] }
    : { contents: [{ uri, mimeType: 'text/plain', text: uri === 'shop://hours' ? `open from ${subscribed ? 'ten' : 'nine'}` : `the book ${uri}` }] },
  'resources/subscribe': ({ uri }) => {
    subscribed = uri;
    setTimeout(() => notify('notifications/resources/updated', { uri }), 200);
    return {};
  },
  'resources/unsubscribe': () => ({}),
  'logging/setLevel': ({ level }) => { notify('notifications/message', { level, logger: 'shop', data: { now: level } }); return {}; },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {}, result, error } = JSON.parse(line);
  if (method === 'notifications/cancelled') {
    const one = running.get(params.requestId);
    if (one) one.cancelled = true;
  } else if (method === undefined) {
    waiting.get(id)?.({ result, error });
    waiting.delete(id);
  } else if (id !== undefined) {
    running.set(id, {});
    Promise.resolve().then(() => {
      if (!methods[method]) throw { code: -32601, message: `no method ${method}` };
      return methods[method](params, id);
    }).then(got => send({ id, result: got }), fault => send({ id, error: { code: fault.code ?? -32603, message: fault.message ?? String(fault), data: fault.data } })).finally(() => running.delete(id));
  }
}
