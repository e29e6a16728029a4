// What the page says of the server, and what clients paste.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { accessible, answer, close, copied, gateway, mounted, open, press, ready, sees, slowWaitsFor, tool } from './tab.mjs';

export const steps = {
  async 'the list of the servers leads to each'() {
    const page = await open(`${gateway}/`);
    await accessible(page, 'the list');
    await page.getByRole('link', { name: 'bookshop', exact: true }).click();
    await ready(page);
    await sees(page, 'Bookshop');
    await page.getByRole('link', { name: 'All servers' }).click(); // and back
    await page.getByRole('link', { name: 'hostile', exact: true }).waitFor();
    assert.equal(page.url(), `${gateway}/`);
    await page.goto(`${gateway}/demo/sse/`);
    await page.getByRole('link', { name: 'All servers' }).click();
    await page.getByRole('link', { name: 'demo', exact: true }).click();
    await ready(page);
    await close(page);
  },

  async 'the head says what the server is'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'About');
    await sees(page, /Streamable HTTP, MCP 2025-11-25: 8 tools, 1 prompt, 1 resource, 1 template/);
    assert.match(await page.title(), /^Bookshop/);
    await sees(page, /Find books, look at their covers/);
    await sees(page, /A server may have more tools for such a client than for one that declares nothing, which the banner counts/);
    await accessible(page, 'the page');
    await page.keyboard.press('Escape');
    await page.locator('.drawer').waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'About', 'the focus goes back');
    await close(page);
  },

  async 'the lines for clients have the URL, and are copied'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Connect a client');
    await press(page, 'Copy what Claude Code needs');
    assert.equal(await copied(page), `claude mcp add --scope user --transport http bookshop ${gateway}/bookshop/mcp`);
    for (const client of await page.locator('#client option').allTextContents()) {
      await page.selectOption('#client', client);
      assert.ok((await page.locator('.connect pre').innerText()).includes(`${gateway}/bookshop/mcp`), client);
    }
    await page.selectOption('#client', 'Cursor');
    const cursor = new URL(await page.getByRole('link', { name: 'Install in Cursor' }).getAttribute('href'));
    assert.deepEqual(JSON.parse(atob(cursor.searchParams.get('config'))), { url: `${gateway}/bookshop/mcp` });

    // Over plain HTTP from another machine a browser gives the page no clipboard.
    const read = await page.evaluateHandle(() => navigator.clipboard);
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    await page.selectOption('#client', 'Codex');
    await press(page, 'Copy what Codex needs');
    await page.getByRole('button', { name: 'Copy what Codex needs' }).getByText('Copied', { exact: true }).waitFor();
    assert.equal(await read.evaluate(clipboard => clipboard.readText()), await page.locator('.connect pre').innerText());
    await close(page);
    const other = await open(`${gateway}/workshop/mcp`); // the client that somebody has chosen, at another server too
    await press(other, 'Connect a client');
    assert.equal(await other.locator('#client').inputValue(), 'Codex');
    await other.selectOption('#client', 'Claude Code');
    await close(other);
  },

  async 'a server that fails says why, and one that starts how long'() {
    const page = await open(`${gateway}/broken/mcp`);
    await page.locator('.headline.failed').waitFor();
    await sees(page, /the database is down/);
    assert.equal(await page.locator('.notice pre').innerText(), 'connecting\nthe database is down');
    await sees(page, /What to do: run the command alone/);
    assert.equal(await page.locator('#main').getByText('initialization failed').count(), 0, 'that it has failed stands before it');
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

  async 'what to do about a failed start is said by its reason'() {
    for (const [reason, words] of [
      ['timeout', /--start-timeout gives a slow one more/], ['start_failed', /Correct the command or the URL/], ['gave_up', /ends soon after each start/],
      ['unauthorized', /Give the gateway credentials/], ['rejected', /has refused to start a session/], ['bad_answer', /is not MCP: see whether its command/],
    ]) {
      const page = await open('about:blank');
      await page.route(`${gateway}/bookshop/mcp`, route => route.request().method() !== 'POST' ? route.continue()
        : route.fulfill({ json: { jsonrpc: '2.0', id: route.request().postDataJSON().id, error: { code: -32603, message: 'initialization failed', data: { type: 'initialization_error', reason } } } }));
      await page.goto(`${gateway}/bookshop/mcp`);
      await page.locator('.headline.failed').waitFor();
      await sees(page, words);
      await close(page);
    }
  },

  async 'the page works wherever its server is mounted'() {
    for (const path of ['/mcp', '/sse', '/mcp/', '/alone/tool', '/ai/mcp', '/ai/sse', '/own/prefix/mcp', '/own/prefix/sse']) {
      const page = await open(`${mounted}${path}`);
      for (const way of ['streamable', 'sse', 'sse-own']) {
        await page.selectOption('#way', way);
        await ready(page);
        await press(page, 'Tools (1)');
        await tool(page, 'greet');
        await page.getByRole('textbox', { name: /^name/ }).fill(`${way} at ${path}`);
        await press(page, 'Call');
        await answer(page).locator('.result').getByText(`Hello, ${way} at ${path}`, { exact: true }).first().waitFor();
      }
      await press(page, 'Connect a client');
      assert.equal(await page.locator('.url code').innerText(), `${mounted}${path}`);
      assert.equal(await page.getByRole('link', { name: 'All servers' }).count(), 0, 'there is one server');
      await close(page);
    }
  },

  async 'the switch offers the transports that are served'() {
    for (const [path, ways] of [['/old/mcp', ['sse', 'sse-own']], ['/new/mcp', ['streamable']], ['/passive/mcp', ['streamable', 'sse-own']]]) {
      const page = await open(`${mounted}${path}`);
      await ready(page);
      assert.deepEqual(await page.locator('#way option').evaluateAll(all => all.map(one => one.value)).then(all => all.sort()), [...ways].sort(), path);
      await tool(page, 'greet');
      await page.getByRole('textbox', { name: /^name/ }).fill(path);
      await press(page, 'Call');
      await answer(page).locator('.result').getByText(`Hello, ${path}`, { exact: true }).first().waitFor();
      await close(page);
    }
  },
};
