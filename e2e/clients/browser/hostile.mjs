// Servers that are hostile, or whose schemas have no end; and what is secret.
import assert from 'node:assert/strict';
import { answer, accessible, close, copied, gateway, open, press, ready, sees, tool } from './tab.mjs';

export const steps = {
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
    await press(page, 'Copy as JSON-RPC');
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
    await answer(page).getByText('This page cannot find out whether it matches the output schema.').first().waitFor();
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
    for (const name of ['Copy as curl', 'Copy as JSON-RPC']) {
      await press(page, name);
      const copy = await copied(page);
      assert.ok(copy.includes('{"user":"ann","key":"…","pins":["…"]}'), copy);
      await sees(page, 'It has … where something is secret: put that in.');
    }
    await press(page, 'Copy link');
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
};
