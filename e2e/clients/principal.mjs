// Logs a principal in at its page in Chromium, and fails if that does not work. Its argument has the browser, the address
// of the gateway, the link, the token of its principal, and that of another one. Without tokens the principal is one of
// the issuer of the gateway, where the person of the browser is logged in.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const { executablePath, gateway, link, token, other } = JSON.parse(process.argv[2]);
const at = new URL(link);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', `--host-resolver-rules=MAP ${at.hostname} ${gateway}`] });
const open = async () => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120000));
  page.on('pageerror', e => { throw e; });
  return { context, page };
};
const send = async (page, text) => {
  if (token) await page.getByLabel('Your token of this gateway').fill(text);
  await page.getByRole('button', { name: 'Allow, and log in' }).click();
};

// Somebody else who has the link gets nowhere.
const stranger = await open();
if (token) {
  await stranger.page.goto(link);
  await send(stranger.page, other);
  await stranger.page.getByText('This is not the token of the client').waitFor();
  assert.deepEqual(await stranger.context.cookies(), []);
}

const { context, page } = await open();
let answer = ''; // the address to which the issuer sends the browser
page.on('request', r => { if (r.url().startsWith(`${at.origin}${at.pathname}/callback`)) answer = r.url(); });
await page.goto(link);
await page.getByText('needs your login at the server').waitFor();
await send(page, token);
await page.getByText('You are logged in.').waitFor();
assert.equal(page.url(), `${at.origin}${at.pathname}/done`, 'the code is in no address that stays');
assert.deepEqual((await context.cookies(at.origin)).filter(c => c.name.startsWith('__Host-')), [], 'the cookie is gone at the end');

// What the issuer has answered is of no use to another browser.
await stranger.page.goto(answer);
await stranger.page.getByText('This browser has begun no login here').waitFor();
await browser.close();
