// Looks at the status page as people do. Arguments: the browser, the URL of the healthy
// server, that of the admin address, and a token. Fails with what is wrong.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const [executablePath, server, admin, token] = process.argv.slice(2);
const patience = 120000;
const evil = `<script>hacked()</script><img src=x onerror=hacked()> "'>`;
const headers = { 'Authorization': `Bearer ${token}`, 'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream' };

// open opens a session of a client with that name, and returns a function that ends it.
async function open(url, name) {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1.0' } };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) });
  const text = await answer.text();
  assert.equal(answer.status, 200, `initialize: ${text}`);
  const session = { ...headers, 'Mcp-Session-Id': answer.headers.get('Mcp-Session-Id') };
  return () => fetch(url, { method: 'DELETE', headers: session });
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const wrong = [];

async function newPage(options) {
  const context = await browser.newContext({ httpCredentials: { username: 'anyone', password: token }, viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.on('console', m => { if (m.type() !== 'log') wrong.push(`console ${m.type()}: ${m.text()}`); });
  page.on('pageerror', e => wrong.push(`error: ${e}`));
  page.on('dialog', d => wrong.push(`dialog: ${d.message()}`));
  return page;
}

const sees = (page, text) => page.getByText(text, { exact: false }).first().waitFor();
const live = page => page.waitForFunction(() => document.getElementById('live-state').textContent === 'live');

// It names the failing server at the top, in words.
const page = await newPage({});
await page.goto(`${admin}/status`);
await live(page);
await sees(page, '1 of 3 servers is failing');
assert.match(await page.locator('section.headline').innerText(), /broken.*no database/s);
assert.match(await page.locator('tbody tr').first().innerText(), /failing\s+broken/);

// It follows a connection that opens and closes, without a reload and keeping the focus;
// the names of the client, and of the server and its tools, stay text.
await page.evaluate(() => { window.kept = true; });
await open(server.replace('healthy', 'hostile'), 'someone');
await page.focus('#sort-client');
const close = await open(server, evil);
await sees(page, evil.slice(0, 39)); // it is clipped
await sees(page, '<b>hostile</b>');
assert.ok(await page.evaluate(() => window.kept), 'the page was loaded again');
assert.equal(await page.evaluate(() => document.activeElement.id), 'sort-client');
assert.equal(await page.locator('script').count(), 1);
assert.equal(await page.locator('img, b:text("hostile")').count(), 0);
await page.getByRole('row', { name: '<script>' }).getByRole('rowheader').getByRole('link').click();
await sees(page, 'ready');
await sees(page, evil);
await close();
await sees(page, 'There is no connection of that id');
wrong.splice(0, wrong.length, ...wrong.filter(text => !text.includes('404'))); // the browser reports that answer as an error

// 1,000 connections: a page has 50. They are sorted and filtered by the keyboard.
await page.goto(`${admin}/status`);
await live(page);
for (let i = 0; i < 1000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => open(server, `client ${String(i + j).padStart(4, '0')}`)));
const rows = () => page.locator('section[aria-labelledby=connections] tbody tr');
await sees(page, 'page 1 of 21');
assert.equal(await rows().count(), 50);
await page.keyboard.press('Tab');
assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
assert.ok(await page.evaluate(() => document.activeElement.getBoundingClientRect().left >= 0), 'the link that skips is not seen');
await page.getByRole('link', { name: 'Client' }).focus();
await page.keyboard.press('Enter');
await sees(page, 'client 0049');
assert.equal(await page.locator('th[aria-sort=ascending]').innerText(), 'Client ↑'.slice(0, 6));
await page.getByRole('link', { name: 'Next' }).click();
await sees(page, 'client 0099');
await page.getByLabel('Text').focus();
await page.keyboard.type('CLIENT 0777');
await page.keyboard.press('Enter');
await page.waitForFunction(() => document.querySelectorAll('section[aria-labelledby=connections] tbody tr').length === 1);
await sees(page, 'client 0777');

// A browser that is left open keeps one page.
const cdp = await page.context().newCDPSession(page);
async function nodes() {
  await cdp.send('HeapProfiler.collectGarbage');
  return (await cdp.send('Memory.getDOMCounters')).nodes;
}
const refreshes = n => page.evaluate(async n => { document.activeElement.blur(); while (n-- > 0) await refresh(); }, n);
await refreshes(3);
const before = await nodes();
await refreshes(300);
const after = await nodes();
assert.ok(after < 2 * before, `300 updates made ${after} nodes of ${before}`);

// It is dark for those who want that, and fits a phone.
const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await background();
await page.emulateMedia({ colorScheme: 'dark' });
assert.notEqual(await background(), light);

// On a laptop nothing of the tables is cut off.
for (const width of [1100, 1280, 1366]) {
  await page.setViewportSize({ width, height: 800 });
  await page.goto(admin + '/status');
  await live(page);
  const cut = await page.evaluate(() => [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length);
  assert.equal(cut, 0, `at ${width} px tables are cut off`);
}
await page.setViewportSize({ width: 390, height: 800 });
for (const path of ['/status', '/status/servers/broken']) {
  await page.goto(admin + path);
  await live(page);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, `${path} is too wide`);
}

// Without JavaScript it works.
const plain = await newPage({ javaScriptEnabled: false });
await plain.goto(`${admin}/status`);
await plain.getByLabel('State').selectOption('failed');
await plain.getByRole('button', { name: 'Filter' }).click();
await sees(plain, 'No connection fits the filter');
await plain.getByRole('link', { name: 'Clear' }).click();
await plain.getByRole('link', { name: 'healthy' }).first().click();
await sees(plain, 'healthy is healthy');

assert.deepEqual(wrong, []);
await browser.close();
