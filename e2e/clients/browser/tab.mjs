// The browser, and what all steps do in it. Its servers come from the Go test, as JSON in the first argument.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

/**
 * The browser to start; the URL of a gateway to several servers, and of its admin address, and the file for
 * which its slow server waits; of one with tokens, and a token; of two servers that want tokens of an issuer,
 * at one of which the page is no client; of a server whose gateway is started again, and which does not start
 * as long as there is the file breaks; of three remote servers at which nobody is logged in, at the last of which nobody
 * ever logs in; of pages in another program; a directory for screenshots, or "".
 * @type {Record<string, string>}
 */
export const { executablePath, gateway, admin, slowWaitsFor, locked, token, issued, noClient, restarted, breaks, remote, remoteOfList, waiting, mounted, images } = JSON.parse(process.argv[2]);

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const patience = Number(process.env.PATIENCE ?? 120000); // of each wait, milliseconds
export const wrong = []; // what went wrong beside the steps

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
export const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
await context.grantPermissions(['clipboard-read', 'clipboard-write']);
// With sharp, a picture has two pixels for each px: pages show it smaller than it is, and it stays clear.
export const sharp = await browser.newContext({ deviceScaleFactor: 2 });
export const end = () => browser.close();

// open opens a page, on which nothing may go wrong.
export async function open(url, expected = /^$/, where = context) {
  const page = await where.newPage();
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

export const sees = (page, text) => page.getByText(text).filter({ visible: true }).first().waitFor();
export const ready = page => page.locator('.headline.ready, .headline.resting').waitFor(); // what the server is, is known
export const press = (page, name) => page.getByRole('button', { name, exact: true }).filter({ visible: true }).first().click();
export const tool = (page, name) => page.locator('.list button', { hasText: name }).filter({ visible: true }).first().click();
export const answer = page => page.locator('.answer:visible');
// passed waits for an exchange on the wire: a method, and what it is about.
export const passed = (page, method, about = '') => page.locator('.wire > li').filter({ has: page.locator('.method', { hasText: new RegExp(`^${method}$`) }) }).filter({ hasText: about }).first().waitFor();
// unfold opens all exchanges that the wire shows.
export const unfold = page => page.evaluate(() => { for (const one of document.querySelectorAll('.wire > li > details')) one.open = true; });
export const copied = page => page.evaluate(() => navigator.clipboard.readText());

// accessible fails if axe-core finds a serious violation. It runs outside of the page's policy.
export async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter(v => v.impact === 'serious' || v.impact === 'critical');
  assert.deepEqual(serious.map(v => `${v.id}: ${v.nodes.map(n => n.html.slice(0, 200)).join('\n')}`), [], what);
}

export async function close(page) {
  assert.deepEqual(await page.evaluate(() => window.violations), [], 'the policy has stopped something');
  await page.close();
}

// tell lets the Go test do something to a gateway, and returns when it has.
export async function tell(what) {
  const lines = createInterface({ input: process.stdin });
  process.stdout.write(`${what}\n`);
  const [done] = await once(lines, 'line');
  lines.close();
  assert.equal(done, what);
}
