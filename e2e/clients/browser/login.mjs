// Remote servers at which nobody is logged in.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { accessible, answer, close, open, press, ready, remote, remoteOfList, sees, tell, tool, waiting } from './tab.mjs';

const login = page => page.getByRole('region', { name: 'Waiting for a login' });
const waits = page => page.locator('.headline .mark').getByText('waiting for a login', { exact: true }).waitFor();
const loginButton = within => within.getByRole('button', { name: 'Log in', exact: true });
const linked = 'You came from a link on another site.';

// loggedIn waits until a page shows that somebody is logged in: the server is ready, with its tools, and the button gone.
async function loggedIn(page) {
  await ready(page);
  await page.locator('.list button', { hasText: 'echo' }).first().waitFor(); // a tool of the server
  await login(page).waitFor({ state: 'detached' });
  assert.equal(await loginButton(page).count(), 0);
  assert.equal(await page.getByText(linked).count(), 0, 'the page asks whether it shall connect');
}

// stranger serves a page of another site, with links.
async function stranger(...links) {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(links.map((to, i) => `<a href="${to}">link ${i}</a>`).join(' '))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://localhost:${server.address().port}/`, close: () => server.close() }; // another site than 127.0.0.1
}

export const steps = {
  async 'a person logs in with the button above the tools, and the page goes on by itself'() {
    const page = await open(remote), other = await open(remote);
    for (const one of [page, other]) {
      await waits(one);
      await login(one).getByText('Nobody is logged in at this server: its tools work after the login.').waitFor();
    }
    await accessible(page, 'a server that waits for a login');
    assert.equal(await page.locator('.headline.ready').count(), 0);
    const passed = [];
    page.on('framenavigated', frame => passed.push(frame.url()));
    await loginButton(login(page)).click();
    await loggedIn(page);
    assert.equal(page.url(), remote, 'the word is gone from the address');
    assert.deepEqual(passed.filter(url => /[?&](code|state)=/.test(url)), [], 'no page that was shown has the code in its address');
    await loggedIn(other); // which was there before the login
    const [back] = passed.filter(url => url.includes('#logged-in='));
    assert.match(back ?? '', /#logged-in=\w{20,}$/, 'the browser comes back with a word');
    const evil = await stranger(back);
    await page.goto(evil.url);
    await page.getByText('link 0').click(); // the word is used up
    await sees(page, linked);
    await close(page);
    await close(other);
    evil.close();
  },

  async 'once the login has ended, a call says so, and the page goes on after the next login where it was'() {
    const page = await open(remote);
    await loggedIn(page);
    await tool(page, 'echo');
    await page.getByRole('textbox', { name: /^message/ }).fill('hi');
    await tell('end the login');
    await press(page, 'Call');
    await answer(page).getByText('It wants you to open').getByRole('link').waitFor();
    await waits(page);
    await login(page).waitFor();
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor(); // its tools are there
    await accessible(page, 'a server whose login has ended');
    await page.waitForURL(/#tool=echo&/);
    const { hash } = new URL(page.url());
    await loginButton(login(page)).click();
    await loggedIn(page);
    assert.equal(new URL(page.url()).hash, hash);
    assert.equal(await page.getByRole('textbox', { name: /^message/ }).inputValue(), 'hi');
    await close(page);
  },

  async 'a person logs in with the button at /, and the page of the server goes on by itself'() {
    const page = await open(remoteOfList);
    await waits(page); // tests have no check of the start, by which the list would know it
    await page.goto(new URL('/', remoteOfList).href);
    await page.locator('.card.wait .mark').getByText('waiting for a login', { exact: true }).waitFor();
    await accessible(page, 'the card of a server that waits for a login');
    await loginButton(page).click();
    await loggedIn(page);
    assert.equal(page.url(), remoteOfList);
    await close(page);
  },

  async 'the tool of agents for a login is shown with the button'() {
    const page = await open(waiting);
    await waits(page);
    await page.locator('.detail').getByText('Agents call this tool for a link').waitFor();
    await loginButton(page.locator('.detail')).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Call', exact: true }).count(), 0);
    await accessible(page, 'the tool login');
    await close(page);
  },

  async 'no link of another site has the page connect, while a login is under way or not'() {
    const evil = await stranger(`${waiting}#logged-in=0123456789ABCDEF`, waiting);
    const page = await open(waiting), sent = [];
    await waits(page);
    await page.route(/\/(authorize|auth)\b/, route => route.fulfill({ contentType: 'text/html', body: '<title>issuer</title>' })); // it stops here
    await loginButton(login(page)).click();
    await page.waitForFunction(() => document.title === 'issuer');
    page.on('request', request => sent.push(request.method()));
    for (const link of ['link 0', 'link 1']) { // in the tab of the button
      await page.goto(evil.url);
      await page.getByText(link).click();
      await sees(page, linked);
      assert.equal(page.url(), waiting, 'the word of a stranger stays in no address');
    }
    assert.ok(sent.every(method => method === 'GET'), sent.join());
    assert.equal(await page.getByRole('button', { name: 'Log in', exact: true }).count(), 0, 'nothing is asked before somebody connects');
    await press(page, 'Connect');
    await waits(page);
    await close(page);
    evil.close();
  },
};
