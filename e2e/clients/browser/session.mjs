// Sessions: how they begin, what passes, how they end, and tokens.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { admin, answer, accessible, breaks, close, context, gateway, issued, locked, noClient, open, passed, press, ready, restarted, sees, tell, token, tool, unfold } from './tab.mjs';

export const steps = {
  async 'the wire shows each transport'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Wire');
    await passed(page, 'initialize');
    await page.selectOption('#way', 'sse');
    await ready(page);
    await sees(page, 'The gateway initializes; tools that ask will fail here.');
    await unfold(page);
    for (const text of ['event: endpoint', 'event: connection', 'event: mcp-response', 'the gateway has initialized the server itself', /waited at the gate for \d+ ms/]) await page.locator('.wire').getByText(text).first().waitFor();
    await page.getByLabel('Filter').filter({ visible: true }).fill('3.1.0');
    assert.equal(await page.locator('.wire').getByText('event: endpoint').count(), 0);
    await page.locator('.wire summary').first().click();
    await page.locator('.wire .message').getByText('"bookshop"').first().waitFor();
    await accessible(page, 'the wire');
    const download = page.waitForEvent('download');
    await press(page, 'Download');
    const entries = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
    assert.ok(entries.every(e => e.ms >= 0 && typeof e.size === 'number'));
    assert.deepEqual(entries.map(e => e.ms), entries.map(e => e.ms).sort((a, b) => a - b), 'in order');
    const steps = ['GET', 'event: endpoint', 'event: connection', 'event: mcp-response'];
    assert.deepEqual(entries.filter(e => steps.includes(e.kind)).slice(0, steps.length).map(e => [e.kind, e.out]), steps.map((kind, i) => [kind, i === 0]));
    await page.selectOption('#way', 'sse-own');
    await ready(page);
    await press(page, 'Tools (8)');
    await tool(page, 'Restock');
    await press(page, 'Call');
    await answer(page).getByText('counted 3 shelves').first().waitFor();
    await close(page);
  },

  async 'a gateway that does not answer is said to be one, and tried again'() {
    // With the routes of this step the browser may send the DELETE of the page twice: its session is gone then.
    const page = await open(`${gateway}/bookshop/mcp`, /net::ERR_FAILED|status of 404/);
    await ready(page);
    await tool(page, 'Show a cover');
    for (const way of ['streamable', 'sse-own']) {
      await page.selectOption('#way', way);
      await ready(page);
      await page.route(/mcp/, route => route.request().method() === 'POST' ? route.abort() : route.continue());
      await press(page, 'Call'); // it fails alone: the session goes on
      await answer(page).locator('.result.failed').getByText(`No answer from ${gateway}/bookshop/mcp: is sse-server running?`).waitFor();
      await page.locator('.headline.ready, .headline.resting').waitFor();
      await page.unroute(/mcp/);
      await press(page, 'Call');
      await answer(page).locator('img').waitFor();
      await press(page, 'Wire');
      await passed(page, 'tools/call', 'cover');
      assert.equal(await page.locator('.wire > li:has(.out) .method').getByText('initialize', { exact: true }).count(), 1, 'it is the same session');
      await press(page, 'Tools (8)');
    }
    // A list that has not come is asked for again.
    await page.route(/mcp/, route => route.request().postDataJSON()?.method === 'tools/list' ? route.abort() : route.continue());
    await page.selectOption('#way', 'streamable');
    await page.locator('.result.failed').filter({ visible: true }).getByText(/No answer from/).first().waitFor();
    await page.unroute(/mcp/);
    await page.getByRole('button', { name: 'Tools (8)', exact: true }).waitFor();
    // An answer to the server that is lost would leave it waiting: that ends the session.
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    await page.route(/mcp$/, route => route.request().method() === 'POST' ? route.abort() : route.continue());
    await press(page, 'Decline');
    await page.locator('.notice').getByText(/No answer from/).waitFor();
    await page.unroute(/mcp$/);
    await ready(page);
    await tool(page, 'Show a cover');
    // Without a session there is nobody to call: the page connects again until there is a gateway.
    await page.route(/mcp$/, route => route.request().method() === 'POST' ? route.abort() : route.continue());
    await page.selectOption('#way', 'sse-own');
    await page.selectOption('#way', 'streamable');
    await page.locator('.notice').getByText(`No answer from ${gateway}/bookshop/mcp: is sse-server running?`).waitFor();
    await sees(page, 'This page tries again by itself.');
    await page.unroute(/mcp$/);
    await ready(page);
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
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
    await press(page, 'Connect a client');
    await page.selectOption('#client', 'Cursor'); // what to paste needs no session
    await press(page, 'Close');
    assert.ok(requests.every(method => method === 'GET'), requests.join());
    await press(page, 'Connect');
    await ready(page);
    await page.getByRole('heading', { name: 'Show a cover' }).waitFor();
    await page.reload(); // by the one who has connected
    await ready(page);
    await page.goto(stranger);
    await page.getByText('list').click(); // from the list, people go on by themselves
    await page.getByRole('link', { name: 'bookshop', exact: true }).click();
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
    for (const way of ['streamable', 'sse', 'sse-own']) {
      const page = await open(`${gateway}/bookshop/mcp`);
      await ready(page);
      await page.selectOption('#way', way);
      await ready(page);
      await tool(page, 'Show a cover');
      await press(page, 'Call');
      await answer(page).getByText('ok after').first().waitFor();
      const before = await connections();
      assert.ok(before > 0, `${before} connections over ${way}`);
      await page.close({ runBeforeUnload: true });
      while (await connections() >= before) await new Promise(resolve => setTimeout(resolve, 100));
    }
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
    await press(page, 'Connect a client');
    assert.ok((await page.locator('.connect pre').innerText()).includes('Authorization: Bearer TOKEN'));
    await press(page, 'Close');
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

  async 'the wire shows what is asked for, and folds'() {
    const page = await open(`${gateway}/workshop/mcp`);
    await page.selectOption('#way', 'sse-own');
    await ready(page);
    await tool(page, 'look');
    await press(page, 'Call');
    await answer(page).getByText('all is there').first().waitFor();
    await press(page, 'Wire');
    const rows = page.locator('.wire > li'), show = page.getByRole('combobox', { name: 'Show' }), isHeartbeat = row => /heartbeat|comment|event id/.test(row);
    // Each row as the page shows it: who began, the method, what it was about, the status.
    const all = () => rows.evaluateAll(all => all.map(row => ['.in, .out', '.method', '.what', '.status'].map(part => row.querySelector(`summary ${part}`).firstChild?.textContent ?? '').join(' ').trim()));
    const others = async () => (await all()).filter(row => !isHeartbeat(row)); // a heartbeat may come at any time
    await show.selectOption('everything');
    await rows.filter({ hasText: /heartbeat|comment/ }).first().waitFor();
    const everything = await others();
    for (const row of ['→ GET  200', '← event: endpoint', '→ initialize  202', '→ notifications/initialized  202', '→ tools/call look 202']) assert.ok(everything.some(one => one.startsWith(row)), `${row} in ${everything.join()}`);
    assert.ok(everything.every(row => !/ result|^. (\d|POST|event: message)/.test(row)), `an answer stands with its method: ${everything.join()}`);
    const wanted = { messages: row => !/GET/.test(row), sent: row => row.startsWith('→'), received: row => row.startsWith('←') };
    for (const [name, passes] of Object.entries(wanted)) {
      await show.selectOption(name);
      assert.deepEqual(await others(), everything.filter(passes), name);
    }
    await show.selectOption('without heartbeats');
    assert.deepEqual(await all(), everything);
    await show.selectOption('sent');
    await page.getByLabel('Filter').filter({ visible: true }).fill('"NAME":"LOOK","ARGUMENTS"'); // and both
    assert.deepEqual(await all(), everything.filter(row => row.startsWith('→ tools/call look')));
    const row = rows.first(), head = row.locator('summary').first(), message = row.locator('.message');
    assert.match(await head.innerText(), /\d+ B\s+\d+ B\s+[\d.]+/, 'its bytes, both ways, and its time');
    assert.equal(await message.count(), 0, 'an exchange is folded first');
    await head.click();
    await message.nth(2).waitFor(); // they are drawn once the row has opened
    assert.deepEqual((await message.locator('.kind').allTextContents()).sort(), ['202', 'POST', 'event: message'], 'both messages, and the status');
    const asked = message.first();
    await asked.locator('.tree').getByText('"look"').waitFor();
    const answered = message.filter({ has: page.locator('.kind', { hasText: 'event: message' }) });
    await answered.locator('summary', { hasText: 'As text' }).click();
    await answered.locator('pre').getByText(/all is there/).waitFor();
    await asked.locator('summary', { hasText: 'As text' }).click();
    await asked.locator('pre').getByText(/"method":"tools\/call"/).waitFor();
    await asked.locator('.tree summary', { hasText: 'name' }).last().click(); // the members of the message fold by themselves
    await asked.locator('.tree').getByText('"look"').waitFor({ state: 'hidden' });
    await head.click();
    await asked.waitFor({ state: 'hidden' });
    await close(page);
  },

  async 'without a client for the page, the login says what is missing'() {
    const page = await open(noClient, /401/);
    await sees(page, 'The gateway wants a token');
    await sees(page, 'This page cannot log in there, because oauth in the configuration of the gateway has no page-client-id: paste an access token for this URL.');
    assert.equal(await page.getByRole('button', { name: 'Log in' }).count(), 0);
    await accessible(page, 'a login without a client');
    await page.getByLabel('Token', { exact: true }).fill('made-up');
    await press(page, 'Connect');
    await sees(page, 'The gateway does not take this token');
    await sees(page, /has no page-client-id/);
    await close(page);
  },

  async 'a gateway that is killed and started again goes on with the page'() {
    const cut = /net::ERR_(CONNECTION|INCOMPLETE_CHUNKED|EMPTY_RESPONSE)/;
    for (const way of ['streamable', 'sse', 'sse-own']) {
      const page = await open(restarted, cut);
      await page.selectOption('#way', way);
      await ready(page);
      await tool(page, 'Quote');
      await page.getByRole('textbox', { name: /^text/ }).fill('before');
      await press(page, 'Call');
      await answer(page).getByText('before').first().waitFor();
      await page.getByRole('textbox', { name: /^text/ }).fill('after');
      const stream = page.waitForResponse(response => response.request().method() === 'GET' && response.headers()['content-type'] === 'text/event-stream');
      await tell('restart');
      await stream; // the page has come back by itself
      await ready(page);
      assert.equal(await page.getByRole('textbox', { name: /^text/ }).inputValue(), 'after', 'what was typed stays');
      await press(page, 'Call');
      await answer(page).locator('.result').getByText('after').first().waitFor();
      assert.equal(await page.locator('.past button').count(), 2, 'so do the calls');
      await close(page);
    }
  },

  async 'a server that is known from before and does not start any more is said to have failed'() {
    for (const way of ['streamable', 'sse', 'sse-own']) {
      writeFileSync(breaks, '');
      await tell('restart');
      const page = await open(restarted);
      await page.selectOption('#way', way);
      await page.locator('.headline').getByText(/Bookshop/).waitFor(); // from memory, of the gateway before
      await tool(page, 'Quote');
      await page.getByRole('textbox', { name: /^text/ }).fill('again');
      await press(page, 'Call');
      await answer(page).locator('.result.failed').getByText(/the drawer is stuck/).first().waitFor();
      await page.locator('.headline.failed').waitFor();
      const head = page.locator('.notice');
      await head.locator('pre').getByText('the drawer is stuck').waitFor();
      await head.getByText('The next call starts the server again.').waitFor();
      await accessible(page, 'a server that was known');
      rmSync(breaks);
      do { // after failures the gateway pauses before each start, and refuses calls meanwhile
        await press(page, 'Call');
        await answer(page).getByText(/(ok|failed) after/).waitFor();
      } while (await answer(page).locator('.result.failed').count() > 0);
      await answer(page).locator('.result').getByText('again').first().waitFor();
      await page.locator('.headline.ready').waitFor();
      await close(page);
    }
  },
};
