// Uses the page of each server as people do. Arguments: the browser, the URL of the gateway, its admin address,
// the URL of a gateway with tokens, a token, the file for which the slow server waits, the URL of a server that
// wants tokens of an issuer, and a directory for screenshots or "". Fails with what is wrong. ONLY=text takes only the steps with the text in their names.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const [executablePath, gateway, admin, locked, token, slowWaitsFor, issued, images] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const patience = Number(process.env.PATIENCE ?? 120000); // of each wait, milliseconds
const wrong = [];

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
await context.grantPermissions(['clipboard-read', 'clipboard-write']);

// open opens a page, on which nothing may go wrong.
async function open(url, expected = /^$/) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.on('console', m => { if (m.type() !== 'log' && !expected.test(m.text())) wrong.push(`${url}: console ${m.type()}: ${m.text()}`); });
  page.on('pageerror', e => wrong.push(`${url}: error: ${e.stack}`));
  page.on('dialog', d => { wrong.push(`${url}: dialog: ${d.message()}`); d.dismiss(); });
  await page.addInitScript(() => { // beside the console: what the policy has stopped
    window.violations = [];
    addEventListener('securitypolicyviolation', e => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
    window.hacked = () => window.violations.push('hacked');
  });
  await page.goto(url);
  return page;
}
const sees = (page, text) => page.getByText(text).filter({ visible: true }).first().waitFor();
const ready = page => page.locator('.headline.ready, .headline.resting').waitFor(); // what the server is, is known
const press = (page, name) => page.getByRole('button', { name, exact: true }).filter({ visible: true }).first().click();
const tool = (page, name) => page.locator('.list button', { hasText: name }).filter({ visible: true }).first().click();
const answer = page => page.locator('.answer:visible');
const copied = page => page.evaluate(() => navigator.clipboard.readText());

// accessible fails if axe-core finds a serious violation. It runs outside of the page's policy.
async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter(v => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(serious.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 200)).join('\n')}`), [], what);
}

async function close(page) {
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the policy has stopped something');
  await page.close();
}

const steps = {
  async 'the list of the servers leads to each'() {
    const page = await open(`${gateway}/`);
    await accessible(page, 'the list');
    await page.getByRole('link', { name: 'bookshop' }).click();
    await ready(page);
    await sees(page, 'Bookshop');
    await close(page);
  },

  async 'the head says what the server is'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await sees(page, /Streamable HTTP, MCP 2025-11-25: 8 tools, 1 prompt, 1 resource, 1 template/);
    assert.match(await page.title(), /^Bookshop/);
    await sees(page, /Find books, look at their covers/);
    await accessible(page, 'the page');
    await close(page);
  },

  async 'the lines for clients have the URL, and are copied'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Copy what Claude Code needs');
    assert.equal(await copied(page), `claude mcp add --transport http bookshop ${gateway}/bookshop/mcp`);
    for (const client of await page.locator('#client option').allTextContents()) {
      await page.selectOption('#client', client);
      assert.ok((await page.locator('.connect pre').innerText()).includes(`${gateway}/bookshop/mcp`), client);
    }
    await page.selectOption('#client', 'Cursor');
    const cursor = new URL(await page.getByRole('link', { name: 'Install in Cursor' }).getAttribute('href'));
    assert.deepEqual(JSON.parse(atob(cursor.searchParams.get('config'))), { url: `${gateway}/bookshop/mcp` });
    await close(page);
  },

  async 'a form is filled in, and a call answered'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await page.getByLabel('Find').first().fill('newest');
    assert.equal(await page.locator('.list button:visible').count(), 1);
    await tool(page, 'Find books');
    assert.equal(await page.getByLabel('words').inputValue(), 'sea', 'the example');
    assert.equal(await page.getByLabel('limit').inputValue(), '10', 'the default');
    await page.getByLabel('genre').selectOption('poetry');
    await page.getByLabel('inStock').selectOption('true');
    await page.getByLabel('Published since').fill('2020-02-29');
    await press(page, 'Add to authors');
    await page.getByLabel('authors 1', { exact: true }).fill('Murdoch');
    await page.getByLabel('to', { exact: true }).fill('20.5');
    await page.getByLabel('more').fill('[1, 2]');
    await press(page, 'Call');
    await answer(page).getByText('It is what the output schema says.').first().waitFor();
    await answer(page).getByText('"Sea of Poppies"').first().waitFor();
    await press(page, 'Copy the call as JSON-RPC');
    const sent = { words: 'sea', limit: 10, genre: 'poetry', inStock: true, since: '2020-02-29', authors: ['Murdoch'], price: { to: 20.5 }, more: [1, 2] };
    assert.deepEqual(JSON.parse(await copied(page)).params, { name: 'find_books', arguments: sent });
    await press(page, 'Copy the call as curl');
    assert.match(await copied(page), new RegExp(`^curl ${gateway}/bookshop/mcp -H 'Content-Type: application/json' -d '\\{"jsonrpc"`));

    // The address shows the call to somebody else, and runs nothing.
    await press(page, 'Copy its address, which shows this call');
    const other = await open(await copied(page));
    await ready(other);
    await other.getByLabel('words').waitFor();
    assert.equal(await other.getByLabel('to', { exact: true }).inputValue(), '20.5');
    assert.equal(await other.locator('.result').count(), 0);
    await press(other, 'Wire');
    assert.equal(await other.locator('.wire').getByText('tools/call').count(), 0);
    await close(other);

    // A call that the address has chosen asks first, unless it only reads, until one is confirmed. One
    // argument that is edited leaves the others as the link has them.
    const linked = await open(`${gateway}/bookshop/mcp#${new URLSearchParams({ tool: 'restock', arguments: '{"shelves":1}' })}`);
    await press(linked, 'Call');
    await linked.getByRole('dialog').getByText('"shelves": 1').waitFor();
    await accessible(linked, 'the question of a link');
    await press(linked, 'Do not run it');
    assert.equal(await linked.locator('.result').count(), 0);
    await linked.getByLabel('shelves').fill('2');
    await press(linked, 'Call');
    await linked.getByRole('dialog').getByText('"shelves": 2').waitFor();
    await press(linked, 'Run it');
    await answer(linked).getByText('counted 2 shelves').first().waitFor();
    await linked.getByLabel('shelves').fill('1');
    await press(linked, 'Call');
    await answer(linked).getByText('counted 1 shelves').first().waitFor();
    // Whoever has opened the tab can change its address while it asks: what runs is what was confirmed, and what
    // the address has now is asked again.
    const change = shelves => linked.evaluate(args => { location.hash = new URLSearchParams({ tool: 'restock', arguments: args }).toString(); }, JSON.stringify({ shelves }));
    const has = shelves => linked.waitForFunction(want => document.querySelector('.form input').value === want, String(shelves));
    await change(4);
    await has(4);
    await press(linked, 'Call');
    await linked.getByRole('dialog').getByText('"shelves": 4').waitFor();
    await change(5);
    await has(5);
    await press(linked, 'Run it');
    await answer(linked).getByText('counted 4 shelves').first().waitFor();
    await press(linked, 'Call');
    await linked.getByRole('dialog').getByText('"shelves": 5').waitFor();
    await press(linked, 'Do not run it');
    await close(linked);

    // As JSON it is the same, and the history brings it back.
    await page.getByLabel('as JSON', { exact: true }).check();
    assert.deepEqual(JSON.parse(await page.getByLabel('Arguments').inputValue()), sent);
    await page.getByLabel('Arguments').fill('{"words":"poppies","limit":1}');
    await press(page, 'Call');
    await page.locator('summary', { hasText: '2 calls' }).waitFor();
    await page.locator('.list button', { hasText: 'Murdoch' }).click();
    assert.equal(await page.getByLabel('authors 1', { exact: true }).inputValue(), 'Murdoch');
    await page.locator('.list button', { hasText: 'poppies' }).click();
    assert.equal(await page.getByLabel('words').inputValue(), 'poppies');
    await close(page);
    // What the form cannot express is JSON, and a value that is given gets no defaults.
    const args = { words: 'sea', strange: { a: [1] } };
    const strange = await open(`${gateway}/bookshop/mcp#${new URLSearchParams({ tool: 'find_books', arguments: JSON.stringify(args) })}`);
    assert.deepEqual(JSON.parse(await strange.getByLabel('Arguments').inputValue()), args);
    await close(strange);
  },

  async 'wrong input is shown where it is, and can be sent anyway'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Find books');
    await page.getByLabel('words').fill('x');
    await page.getByLabel('limit').fill('51');
    await page.getByLabel('more').fill('{');
    await press(page, 'Call');
    await sees(page, /This is not valid JSON/);
    await page.getByLabel('more').fill('');
    await press(page, 'Call');
    await sees(page, 'Not called: 2 faults in the arguments.');
    assert.equal(await page.locator('[aria-invalid=true]').count(), 2);
    assert.equal(await page.evaluate(() => document.activeElement.value), 'x', 'the first wrong field has the focus');
    await accessible(page, 'with faults');
    await press(page, 'Call it anyway');
    await answer(page).getByText('ok after').first().waitFor();
    await close(page);
  },

  async 'nothing that is typed is lost between form and JSON'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Find books');
    const box = page.getByLabel('as JSON', { exact: true }), text = page.getByLabel('Arguments');
    await page.getByLabel('more').fill('{"half": ');
    await box.click();
    await sees(page, /It stays a form: more: This is not valid JSON/);
    assert.equal(await page.getByLabel('more').inputValue(), '{"half": ');
    await page.getByLabel('more').fill('');
    await box.click();
    for (const [typed, why] of [['{"half": ', /It stays JSON: This is not valid JSON/], ['{"zzz":1,"words":"sea"}', 'It stays JSON: the form has no fields for all of it.']]) {
      await text.fill(typed);
      await box.click();
      await sees(page, why);
      assert.ok(await box.isChecked());
      assert.equal(await text.inputValue(), typed);
    }
    await text.fill('{"limit":3}'); // what is required may be missing
    await box.click();
    assert.equal(await page.getByLabel('limit').inputValue(), '3');
    await close(page);
  },

  async 'an empty text is said to be one'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Quote');
    await sees(page, 'if it is empty, an empty text is sent');
    await press(page, 'Call');
    await answer(page).getByText('(empty text)').waitFor();
    await close(page);
  },

  async 'progress is shown, and a call cancelled'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Restock');
    await page.getByLabel('shelves').fill('2');
    await press(page, 'Call');
    await answer(page).getByText('counted 2 shelves').first().waitFor();
    await sees(page, /Counts the shelves, for the time/); // the definition has changed meanwhile, and the answer stays
    await answer(page).getByText('counted 2 shelves').first().waitFor();
    await page.getByLabel('shelves').fill('1000000');
    await press(page, 'Call');
    await sees(page, /^shelf \d+$/);
    assert.ok(await page.locator('progress').evaluate(bar => bar.value > 0 && bar.max === 1000000));
    await press(page, 'Cancel');
    await answer(page).getByText('cancelled after').first().waitFor();
    assert.equal(await answer(page).locator('.result').innerText(), 'you have cancelled it');
    await press(page, 'Wire');
    await sees(page, /notifications\/cancelled/);
    await close(page);
  },

  async 'a call goes on while another tool is open'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Restock');
    await page.getByLabel('shelves').fill('1000000');
    await press(page, 'Call');
    await sees(page, /^shelf \d+$/);
    const calls = page.locator('.past button'), about = page.locator('.detail p.text').first(), before = await about.innerText();
    await page.getByLabel('as JSON', { exact: true }).check();
    await page.getByLabel('Arguments').fill('{"half": ');
    await page.waitForFunction(before => document.querySelector('.detail p.text').innerText !== before, before); // the definition has changed
    assert.equal(await page.evaluate(() => document.activeElement.value), '{"half": ', 'what is half typed stays, with the focus');
    await sees(page, /^shelf \d+$/);
    await tool(page, 'Show a cover');
    await calls.filter({ hasText: 'running since' }).waitFor();
    assert.equal(await page.locator('progress:visible').count(), 0);
    await press(page, 'Call'); // beside the one that runs
    await answer(page).locator('img').waitFor();
    await calls.filter({ hasText: 'restock' }).click();
    assert.equal(await page.getByLabel('shelves').inputValue(), '1000000');
    assert.ok(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled(), 'a call that runs is not made again by a slip');
    await sees(page, /^shelf \d+$/);
    await accessible(page, 'with a call that runs');
    await press(page, 'Cancel');
    await answer(page).getByText('cancelled after').first().waitFor();
    assert.ok(await page.getByRole('button', { name: 'Call', exact: true }).isEnabled());
    await calls.filter({ hasText: 'cover' }).click(); // the result is still there
    await answer(page).locator('img').waitFor();
    await tool(page, 'Restock');
    assert.equal(await page.getByLabel('shelves').inputValue(), '1000000', 'what was typed is there again');
    await page.getByLabel('shelves').fill('3');
    await press(page, 'Call');
    await sees(page, /^shelf \d+$/);
    await tool(page, 'Show a cover');
    await calls.filter({ hasText: 'restock' }).filter({ hasText: 'ok after' }).click(); // it ended unseen
    await answer(page).getByText('counted 3 shelves').first().waitFor();
    await page.reload();
    await ready(page);
    assert.equal(await calls.count(), 3);
    await calls.filter({ hasText: 'cover' }).click();
    await answer(page).getByText('Its result is gone').first().waitFor();
    await close(page);
  },

  async 'results are shown by their kind'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    const image = answer(page).locator('img');
    await image.waitFor();
    assert.equal(await image.evaluate(i => i.decode().then(() => i.naturalWidth)), 96);
    assert.equal(await answer(page).locator('audio').count(), 1);
    await answer(page).getByText('*A cover*').first().waitFor(); // Markdown is text
    const link = answer(page).getByRole('link', { name: 'https://books.example/sea' });
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    await answer(page).getByText('Charles Arrowby leaves London.').first().waitFor();
    await accessible(page, 'with a result');
    await tool(page, 'fail');
    await press(page, 'Call');
    await answer(page).getByText('The tool reports an error:').first().waitFor();
    await answer(page).getByText('the shelf is empty').first().waitFor();
    await tool(page, 'lie');
    await press(page, 'Call');
    await answer(page).getByText('It is not what the output schema says:').first().waitFor();
    await close(page);
  },

  async 'a blob is a text, or a file to save, and an error may want a URL to be opened'() {
    const page = await open(`${gateway}/deep/mcp`);
    await ready(page);
    await tool(page, 'log_in_first');
    await press(page, 'Call');
    await answer(page).getByRole('link', { name: 'https://books.example/login' }).waitFor();
    assert.equal(await answer(page).getByRole('link').count(), 1);
    await tool(page, 'blobs');
    await press(page, 'Call');
    await answer(page).getByText('Bücher', { exact: true }).waitFor();
    assert.equal(await answer(page).getByRole('button', { name: 'Save' }).count(), 2); // one is no UTF-8
    const download = page.waitForEvent('download');
    await press(page, 'Save');
    const file = await download;
    assert.equal(file.suggestedFilename(), 'the_sea_.zip');
    assert.equal(readFileSync(await file.path(), 'utf8'), 'PK');
    await close(page);
  },

  async 'a destructive tool asks first'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Remove a book');
    await page.getByLabel('title').fill('Sea of Poppies');
    await press(page, 'Call');
    await page.getByRole('dialog').getByText('"title": "Sea of Poppies"').waitFor();
    await accessible(page, 'the question');
    await press(page, 'Do not run it');
    assert.equal(await page.locator('.result').count(), 0);
    await press(page, 'Call');
    await press(page, 'Run it');
    await answer(page).getByText('removed Sea of Poppies').first().waitFor();
    await close(page);
  },

  async 'the server asks, and logs'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    await page.locator('.headline.ready').waitFor(); // who asks is there
    await accessible(page, 'an elicitation');
    await page.getByLabel('Street').fill('x');
    await press(page, 'Answer');
    await sees(page, 'Not sent: what is wrong stands under the fields.');
    await page.getByLabel('Street').fill('Quay 1');
    await page.getByLabel('As a present').check();
    await press(page, 'Answer');
    await answer(page).getByText('"Quay 1"').first().waitFor();
    await press(page, 'Call');
    await press(page, 'Decline');
    await answer(page).getByText('"decline"').first().waitFor();
    await press(page, 'Log');
    await sees(page, 'the answer: decline');
    await page.getByLabel('From').selectOption('error');
    await sees(page, 'The server sends messages from error on.');
    await accessible(page, 'the log');
    await close(page);
  },

  async 'prompts and resources are read, completed and followed'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Prompts (1)');
    await sees(page, 'Choose a prompt to see its arguments, and to get it.');
    await tool(page, 'Review a book');
    await page.getByLabel('title').fill('pop');
    await page.locator('datalist option[value="Sea of Poppies"]').waitFor({ state: 'attached' });
    await page.getByLabel('title').fill('Sea of Poppies');
    await press(page, 'Get');
    await sees(page, 'Review Sea of Poppies, please.');
    await accessible(page, 'a prompt');
    await press(page, 'Resources (2)');
    await sees(page, 'Choose a resource to read it, or a template to say which one.');
    await tool(page, 'Opening hours');
    await sees(page, 'open from nine');
    await page.getByLabel('follow its changes').check();
    await sees(page, 'open from ten');
    await press(page, 'Log');
    assert.equal(await page.getByLabel('From').inputValue(), '', 'nothing was asked for');
    await page.getByLabel('From').selectOption('debug');
    await sees(page, 'The server sends messages from debug on.');
    await page.selectOption('#way', 'sse-own'); // another session is asked for the same
    await ready(page);
    await press(page, 'Wire');
    await sees(page, /^resources\/subscribe \d+ shop:\/\/hours$/);
    await sees(page, /^logging\/setLevel \d+$/);
    await press(page, 'Resources (2)');
    assert.ok(await page.getByLabel('follow its changes').isChecked());
    await tool(page, 'A book');
    await page.getByLabel('id').fill('a b/1');
    await page.getByLabel('part', { exact: true }).fill('2');
    await press(page, 'Read');
    await sees(page, 'the book shop://books/a%20b%2F1?part=2');
    await accessible(page, 'a resource');
    await close(page);
  },

  async 'the wire shows each transport'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Wire');
    await sees(page, 'initialize 1');
    await page.selectOption('#way', 'sse');
    await ready(page);
    await sees(page, /Here the server cannot ask/);
    for (const text of ['event: endpoint', 'event: connection', 'event: mcp-response', 'the gateway has initialized the server itself', /waited at the gate for \d+ ms/]) await sees(page, text);
    await page.getByLabel('Filter').filter({ visible: true }).fill('mcp-response');
    assert.equal(await page.locator('.wire').getByText('event: endpoint').count(), 0);
    await page.locator('.wire summary').first().click();
    await page.locator('.wire .message').getByText('"bookshop"').first().waitFor();
    await accessible(page, 'the wire');
    const download = page.waitForEvent('download');
    await press(page, 'Download');
    const entries = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
    assert.ok(entries.some(e => e.kind === 'event: endpoint') && entries.every(e => e.ms >= 0 && typeof e.size === 'number'));
    await page.selectOption('#way', 'sse-own');
    await ready(page);
    await press(page, 'Tools (8)');
    await tool(page, 'Restock');
    await press(page, 'Call');
    await answer(page).getByText('counted 3 shelves').first().waitFor();
    await close(page);
  },

  async 'a server that fails says why, and one that starts how long'() {
    const page = await open(`${gateway}/broken/mcp`);
    await page.locator('.headline.failed').waitFor();
    await sees(page, /the database is down/);
    assert.equal(await page.locator('.headline pre').innerText(), 'connecting\nthe database is down');
    await sees(page, /What to do: run the command alone/);
    assert.equal(await page.locator('.headline').getByText('initialization failed').count(), 0, 'that it has failed stands before it');
    assert.equal(await page.getByText('--start-timeout').count(), 0, 'time does not help a server that has ended');
    await accessible(page, 'a failed server');
    await page.selectOption('#way', 'sse');
    await page.locator('.headline.failed').waitFor();
    await press(page, 'Connect again');
    await page.locator('.headline.failed').waitFor();
    await close(page);
    const slow = await open(`${gateway}/slow/mcp`);
    await sees(slow, /starting/);
    await slow.waitForFunction(() => /\d+ ms|\d s/.test(document.getElementById('seconds')?.textContent ?? ''));
    writeFileSync(slowWaitsFor, '');
    await ready(slow);
    await close(slow);
  },

  async 'a gateway that does not answer is said to be one, and tried again'() {
    const page = await open(`${gateway}/bookshop/mcp`, /net::ERR_FAILED/);
    await ready(page);
    await tool(page, 'Show a cover');
    await page.route('**/mcp', route => route.abort());
    await press(page, 'Call');
    await page.locator('.headline.failed').getByText(`No answer from ${gateway}/bookshop/mcp: is sse-server running?`).waitFor();
    await sees(page, 'This page tries again by itself.');
    await page.unroute('**/mcp');
    await ready(page);
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
    await close(page);
  },

  async 'many resources, and a tool that runs only as a task, say what is not there'() {
    const page = await open('about:blank'), all = {
      'resources/list': { resources: Array.from({ length: 703 }, (_, i) => ({ uri: `shop://${i}`, name: `shelf ${i}` })) },
      'tools/list': { tools: [{ name: 'later', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }] },
    };
    await page.route(`${gateway}/bookshop/mcp`, route => {
      const { id, method } = route.request().postDataJSON() ?? {};
      return all[method] ? route.fulfill({ json: { jsonrpc: '2.0', id, result: all[method] } }) : route.continue();
    });
    await page.goto(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'later');
    await sees(page, /This tool runs only as a task/);
    assert.ok(await page.getByRole('button', { name: 'Call', exact: true }).isDisabled());
    await press(page, 'Resources (704)');
    await sees(page, 'These are 500 of 703: find the others by their names.');
    await page.locator('.part', { hasText: 'Templates' }).waitFor();
    await page.getByLabel('Find').filter({ visible: true }).fill('shelf 702');
    assert.equal(await page.locator('.list button:visible').count(), 1);
    await accessible(page, 'many resources');
    await close(page);
  },

  async 'no session begins before somebody wants it'() {
    const elsewhere = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(`<a href="${gateway}/bookshop/mcp#tool=cover">link</a><a href="${gateway}/">list</a>`)).listen(0, '127.0.0.1');
    await new Promise(resolve => elsewhere.once('listening', resolve));
    const stranger = `http://localhost:${elsewhere.address().port}/`; // another site than 127.0.0.1
    const page = await open(stranger), requests = [];
    page.on('request', request => requests.push(request.method()));
    await page.getByText('link').click();
    await sees(page, 'You came from a link on another site.');
    await sees(page, 'bookshop');
    await accessible(page, 'the page before its session');
    await page.selectOption('#client', 'Cursor'); // what to paste needs no session
    assert.ok(requests.every(method => method === 'GET'), requests.join());
    await press(page, 'Connect');
    await ready(page);
    await page.getByRole('heading', { name: 'Show a cover' }).waitFor();
    await page.reload(); // by the one who has connected
    await ready(page);
    await page.goto(stranger);
    await page.getByText('list').click(); // from the list, people go on by themselves
    await page.getByRole('link', { name: 'bookshop' }).click();
    await ready(page);
    await close(page);
    elsewhere.close();

    // A tab in the background waits until it is looked at.
    const hidden = await context.newPage();
    await hidden.addInitScript(() => { for (const name of ['hidden', 'prerendering']) Object.defineProperty(document, name, { value: true, configurable: true }); });
    const sent = [];
    hidden.on('request', request => sent.push(request.method()));
    await hidden.goto(`${gateway}/bookshop/mcp`);
    const change = name => hidden.evaluate(name => {
      delete document[name];
      document.dispatchEvent(new Event(name === 'hidden' ? 'visibilitychange' : 'prerenderingchange'));
    }, name);
    await sees(hidden, 'not connected');
    await change('hidden');
    assert.equal(await hidden.evaluate(() => document.hidden), false);
    assert.ok(sent.every(method => method === 'GET'), sent.join());
    await change('prerendering');
    await ready(hidden);
    await hidden.close();
  },

  async 'a session ends with its tab'() {
    const connections = async () => [...(await (await fetch(`${admin}/metrics`)).text()).matchAll(/^mcp_sse_connections\{[^}]*bookshop[^}]*\} (\d+)/gm)].reduce((sum, found) => sum + Number(found[1]), 0);
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    const before = await connections();
    assert.ok(before > 0, `${before} connections`);
    await page.close({ runBeforeUnload: true });
    while (await connections() >= before) await new Promise(resolve => setTimeout(resolve, 100));
  },

  async 'a gateway with tokens is asked for one'() {
    const page = await open(`${locked}/mcp`, /401/);
    await sees(page, 'The gateway wants a token');
    assert.equal(await page.locator('#news').innerText(), 'The server waits for a token');
    await accessible(page, 'the question for a token');
    await page.selectOption('#way', 'sse');
    await sees(page, 'The gateway wants a token');
    await page.getByLabel('Token', { exact: true }).fill('wröng');
    await press(page, 'Connect');
    await sees(page, /This is not a token: it has characters/);
    await page.getByLabel('Token', { exact: true }).fill('wrong');
    await press(page, 'Connect');
    await sees(page, 'The gateway does not take this token');
    await page.getByLabel('Token', { exact: true }).fill(token);
    await page.keyboard.press('Enter');
    await ready(page);
    assert.ok(!(await page.content()).includes(token), 'the page shows the token');
    assert.ok((await page.locator('.connect pre').innerText()).includes('Authorization: Bearer TOKEN'));
    await tool(page, 'echo');
    await page.getByRole('textbox', { name: /^message/ }).fill('hi');
    await page.keyboard.press('Enter');
    await answer(page).getByText('hi').first().waitFor();
    await press(page, 'Wire');
    const download = page.waitForEvent('download');
    await press(page, 'Download');
    assert.ok(!readFileSync(await (await download).path(), 'utf8').includes(token), 'the wire has the token');
    await page.reload();
    await ready(page); // the tab keeps it
    await press(page, 'Forget the token');
    await sees(page, 'The gateway wants a token');
    assert.equal(await page.getByRole('button', { name: 'Forget the token' }).filter({ visible: true }).count(), 0);
    await close(page);
    const other = await open(`${locked}/mcp`, /401/);
    await sees(other, 'The gateway wants a token'); // and no other tab has it
    await close(other);
  },

  async 'the page logs in at an issuer'() {
    const page = await open(issued, /401/);
    await sees(page, 'The gateway wants a token');
    await page.evaluate(() => { location.hash = '#tool=echo&arguments=%7B%22message%22%3A%22kept%22%7D'; });
    await press(page, 'Log in');
    await ready(page); // the issuer has redirected
    assert.equal(new URL(page.url()).search, '', 'the code is out of the address');
    await page.waitForFunction(() => document.querySelector('textarea')?.value === 'kept'); // the call that the address had
    await press(page, 'Call');
    await answer(page).getByText('kept').first().waitFor();
    await close(page);
    // A code that this tab has not asked for is none.
    const other = await open(`${issued}?code=x&state=y`, /401/);
    await sees(other, 'this tab has not begun this login');
    await close(other);
  },

  async 'a hostile server stays text'() {
    const page = await open(`${gateway}/hostile/mcp`);
    await ready(page);
    const call = async () => {
      await tool(page, '<img src=x');
      await press(page, 'Call');
      await page.getByRole('button', { name: 'Call it anyway' }).or(page.getByText('The server asks')).first().waitFor();
      if (await page.getByRole('button', { name: 'Call it anyway' }).isVisible()) await press(page, 'Call it anyway');
      await sees(page, 'The server asks');
      await press(page, 'Answer');
      await sees(page, /It wants you to open/);
      await press(page, 'Accept');
      await answer(page).getByText('ok after').first().waitFor();
    };
    await call();
    for (const part of ['Prompts (1)', 'Resources (3)']) {
      await press(page, part);
      await tool(page, '<img src=x');
      const get = page.getByRole('button', { name: 'Get' }).filter({ visible: true });
      if (await get.count() > 0) await get.click();
      await page.locator('.answer:visible').getByText('<script>').first().waitFor();
    }
    await press(page, 'Log');
    await sees(page, /<script>/);
    await press(page, 'Wire');
    await page.evaluate(() => { for (const entry of document.querySelectorAll('.wire > li > details')) entry.open = true; });
    await page.locator('.wire .message').getByText('<script>').first().waitFor();
    const made = await page.evaluate(() => [...document.querySelectorAll('*')].filter(e =>
      e.matches('iframe, object, embed, base, style, form[action], script:not(#about, [src="?page=script.js"]), img:not([src^="data:image/png;base64,"]), audio:not([src^="data:audio/"])')
      || e.matches('a[href]:not([href^="#"], [href^="http://"], [href^="https://"])') || e.matches('b') && e.textContent === 'bold'
      || [...e.attributes].some(({ name }) => name.startsWith('on') || name === 'style')).map(e => e.outerHTML.slice(0, 200)));
    assert.deepEqual(made, []);
    await page.selectOption('#way', 'sse-own');
    await ready(page);
    await press(page, 'Tools (3)');
    await call();
    await accessible(page, 'a hostile server');
    await close(page);
  },

  async 'a hostile server has objects where texts are'() {
    const page = await open('about:blank');
    let reply = id => ({ jsonrpc: '2.0', id, error: { code: -32000, message: 'no start', data: { phase: { toString: 1 } } } });
    const strange = { name: { toString: 1 }, title: 'Strange', inputSchema: { type: 'object', properties: { a: { type: 'string' } } } };
    let wanted = 'initialize';
    await page.route(`${gateway}/hostile/mcp`, route => {
      const { id, method } = route.request().postDataJSON() ?? {};
      return method === wanted ? route.fulfill({ json: reply(id) }) : route.continue();
    });
    await page.goto(`${gateway}/hostile/mcp`);
    await page.locator('.headline.failed').waitFor();
    await sees(page, 'no start');
    wanted = 'tools/list';
    reply = id => ({ jsonrpc: '2.0', id, result: { tools: [strange] } });
    await press(page, 'Connect again');
    await ready(page);
    await tool(page, 'Strange');
    await page.getByLabel('a', { exact: true }).fill('typed');
    await page.waitForFunction(() => location.hash.includes('typed'));
    await close(page);
  },

  async 'schemas without an end, and patterns that run for ever, stop no tab'() {
    const page = await open(`${gateway}/deep/mcp`);
    await ready(page);
    await tool(page, 'tree');
    await page.getByRole('button', { name: 'Fill in left' }).click(); // what is inside is made now
    const inside = page.locator('fieldset', { hasText: 'left' }).last();
    await inside.getByLabel('name').fill('a');
    await inside.getByRole('button', { name: 'Add to children' }).click();
    await inside.getByLabel('name').last().fill('b');
    await accessible(page, 'a recursive form');
    await press(page, 'Call');
    await answer(page).getByText('ok after').first().waitFor();
    await press(page, 'Copy the call as JSON-RPC');
    assert.deepEqual(JSON.parse(await copied(page)).params.arguments, { name: 'root', kin: { left: { name: 'a', children: [{ name: 'b' }] } } });
    for (const name of ['wide', 'multiplied']) {
      await tool(page, name);
      await sees(page, 'This schema is too deep for a form: write JSON.');
    }
    await page.getByLabel('Arguments').fill('{"a1":{"a":"b"}}');
    await press(page, 'Call');
    await answer(page).getByText('"b"').first().waitFor();
    await tool(page, 'choices');
    assert.equal(await page.locator('.detail:visible option').count(), 0);
    await tool(page, 'pattern');
    await press(page, 'Call');
    await answer(page).getByText('The arguments are not checked here').first().waitFor();
    await answer(page).getByText('This page cannot find out whether it is what the output schema says.').first().waitFor();
    await tool(page, 'tree'); // the checks go on
    await page.getByLabel('name').first().fill('');
    await page.getByLabel('as JSON', { exact: true }).check();
    await page.getByLabel('Arguments').fill('{}');
    await press(page, 'Call');
    await sees(page, 'Not called: 1 fault in the arguments.');
    await close(page);
  },

  async 'what the schema calls secret leaves the page for the server alone'() {
    const page = await open(`${gateway}/deep/mcp`);
    await ready(page);
    await tool(page, 'sign_in');
    await page.getByLabel('user').fill('ann');
    await page.getByLabel('key').fill('hush-1');
    await press(page, 'Add to pins');
    await page.getByLabel('pins 1', { exact: true }).fill('hush-2');
    assert.deepEqual(await page.locator('.form input:visible').evaluateAll(all => all.map(one => one.type)), ['password', 'password']);
    await press(page, 'Call');
    await answer(page).getByText('"hush-1"').first().waitFor();
    for (const name of ['Copy the call as curl', 'Copy the call as JSON-RPC']) {
      await press(page, name);
      const copy = await copied(page);
      assert.ok(copy.includes('{"user":"ann","key":"…","pins":["…"]}'), copy);
      await sees(page, 'It has … where something is secret: put that in.');
    }
    await press(page, 'Copy its address, which shows this call');
    for (const text of [await copied(page), page.url(), await page.evaluate(() => JSON.stringify(sessionStorage)), await page.locator('.past').innerText()]) {
      assert.ok(text.includes('ann') && !text.includes('hush'), text);
    }
    await page.locator('.past button').first().click();
    assert.equal(await page.getByLabel('user').inputValue(), 'ann');
    assert.equal(await page.getByLabel('key').inputValue(), '');
    await close(page);

    // The address of the page never has what is secret. A link that has it sets nothing: the question would hide it.
    const linked = await open(`${gateway}/deep/mcp#${new URLSearchParams({ tool: 'sign_in', arguments: '{"user":"ann","key":"hush","pins":["hush"]}' })}`);
    await linked.getByLabel('key').waitFor();
    assert.equal(await linked.getByLabel('user').inputValue(), 'ann');
    assert.equal(await linked.getByLabel('key').inputValue(), '');
    assert.equal(await linked.getByLabel('pins 1', { exact: true }).count(), 0);
    await close(linked);

    // A definition that does not call it secret any more does not get what was typed when it was.
    const changed = await open('about:blank');
    let isOpen = false;
    await changed.route(`${gateway}/deep/mcp`, async route => {
      if (route.request().postDataJSON()?.method !== 'tools/list') return route.continue();
      const response = await route.fetch(), body = await response.text();
      return route.fulfill({ response, body: isOpen ? body.replace('"format":"password"', '"title":"Open now"').replace('["user","key"]', '["user"]') : body });
    });
    await changed.goto(`${gateway}/deep/mcp`);
    await ready(changed);
    await tool(changed, 'sign_in');
    await changed.getByLabel('user').fill('ann');
    await changed.getByLabel('key').fill('hush');
    isOpen = true;
    await changed.selectOption('#way', 'streamable'); // another session, with other tools
    await changed.locator('label', { hasText: 'Open now' }).waitFor();
    assert.equal(await changed.getByLabel('user').inputValue(), 'ann');
    assert.equal(await changed.getByLabel('Open now').inputValue(), '');
    await changed.getByLabel('user').fill('bob');
    await changed.waitForFunction(() => location.hash.includes('bob'));
    assert.ok(!changed.url().includes('hush'), changed.url());
    await close(changed);
  },

  async 'the keyboard is enough'() {
    const page = await open(`${gateway}/demo/mcp`);
    await ready(page);
    await page.locator('.list button').first().waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to content');
    for (let i = 0; i < 40 && !(await focused()).startsWith('echo'); i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    for (let i = 0; i < 40 && await page.evaluate(() => document.activeElement?.tagName) !== 'TEXTAREA'; i++) await page.keyboard.press('Tab');
    await page.keyboard.type('by keys');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('alone');
    await page.keyboard.press('Enter');
    await answer(page).getByText(/by keys\s+alone/).first().waitFor();
    for (let i = 0; i < 9 && await focused() !== 'Call'; i++) await page.keyboard.press('Tab');
    const before = await answer(page).locator('.result').elementHandle();
    await page.keyboard.press('Enter');
    await before.waitForElementState('hidden');
    await answer(page).locator('.result').waitFor();
    assert.equal(await focused(), 'Call', 'the focus is where it was before the call');
    await close(page);
  },

  async 'it is dark for those who want that, and fits a phone'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.notEqual(await background(), light);
    await accessible(page, 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 390, height: 844 });
    for (const [part, name] of [['Tools (8)', 'tools'], ['Prompts (1)', 'prompts'], ['Resources (2)', 'resources'], ['Log', 'log'], ['Wire', 'wire']]) {
      await press(page, part);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390, `${name} is too wide`);
    }
    await press(page, 'Tools (8)');
    await page.setViewportSize({ width: 320, height: 320 });
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    const card = await page.locator('.ask').boundingBox();
    assert.ok(card.height > 320 && card.y >= 0 && card.y < 40, `an elicitation that is taller than the screen begins at ${card.y} of ${card.height}`);
    await press(page, 'Decline');
    await page.setViewportSize({ width: 390, height: 844 });
    const other = await open(`${gateway}/hostile/mcp`);
    await other.setViewportSize({ width: 390, height: 844 });
    await ready(other);
    await tool(other, '<img src=x');
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth) <= 390, 'long names make it too wide');
    await close(other);
    await close(page);
  },

  // Beside the screenshots are the words of what can be read and pressed on them: they tell that a picture is old.
  async 'screenshots for the documentation'() {
    const file = new URL('../../docs/images/page.txt', import.meta.url);
    let words = '';
    const shot = async (page, name) => {
      for (const part of ['Prompts (1)', 'Resources (2)']) await page.getByRole('button', { name: part, exact: true }).waitFor();
      await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
      const labels = await page.locator('h1, h2, h3, legend, label, button, a').filter({ visible: true }).evaluateAll(all =>
        all.filter(one => !one.closest('.wire')).map(one => (one.tagName === 'LABEL' ? one.firstChild : one).textContent.trim()));
      const still = labels.map(label => label.replace(/\d+(\.\d+)? m?s\b|\d+:\d+:\d+(\s[AP]M)?/g, 'TIME'));
      words += `${[`page-${name}.png`, ...new Set(still)].filter(Boolean).join('\n  ')}\n`;
      if (images) await page.screenshot({ path: `${images}/page-${name}.png` });
    };
    const page = await open(`${gateway}/bookshop/mcp`);
    await page.setViewportSize({ width: 1200, height: 960 });
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
    await shot(page, 'light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.selectOption('#way', 'sse');
    await ready(page);
    await press(page, 'Wire');
    await sees(page, 'tools/list');
    await shot(page, 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 390, height: 1100 });
    await page.selectOption('#way', 'streamable');
    await ready(page);
    await press(page, 'Tools (8)');
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    await shot(page, 'phone');
    if (images) writeFileSync(file, words);
    assert.equal(words, readFileSync(file, 'utf8'), 'the pictures in docs/images are old: ONLY=screenshots go test -tags all -run TestPageInABrowser ./e2e -images');
    await close(page);
  },
};

const only = process.env.ONLY ?? '';
for (const [name, step] of Object.entries(steps)) {
  if (!name.includes(only)) continue;
  try {
    await step();
    assert.deepEqual(wrong, []);
  } catch (error) {
    error.message = `${name}: ${error.message}`;
    throw error;
  }
}
await browser.close();
