// The page at the root: cards of all servers, and a tool of any of them.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { accessible, admin, close, copied, gateway, locked, open, press, ready, sees, slowWaitsFor, token } from './tab.mjs';

const card = (page, name) => page.locator('.card', { has: page.getByRole('heading', { name, exact: true }) });

export const steps = {
  async 'the page at / has a card for each server, and opens nothing'() {
    const first = await open(`${gateway}/bookshop/mcp`);
    await ready(first); // so that its tools are known
    await close(first);
    const broken = await open(`${gateway}/broken/mcp`);
    await broken.locator('.headline.failed').waitFor();
    await close(broken);
    const page = await open(`${gateway}/`);
    const methods = new Set();
    page.on('request', request => methods.add(request.method()));
    await card(page, 'bookshop').getByText(/^8 tools/).waitFor();
    await card(page, 'bookshop').getByText(/^Bookshop 3\.1\.0$/).waitFor(); // its title
    await card(page, 'bookshop').getByText('Find books, look at their covers').waitFor();
    const failing = card(page, 'broken');
    assert.equal(await failing.locator('.failure pre').innerText(), 'connecting\nthe database is down', 'its stderr has its lines');
    await failing.getByText('What to do:').waitFor();
    const rules = card(page, 'demo').getByRole('list', { name: 'Warnings about its rules' });
    await rules.getByText('exclude "delete_*" meets nothing that the server lists').waitFor();
    assert.match(await card(page, 'mcp').innerText(), /View[^]*bookshop[^]*broken/, 'the view of all has its servers');
    assert.equal(await page.locator('.card').count(), 8);
    assert.match(await page.locator('h1').innerText(), /^7 MCP servers, 1 view /);
    const boxes = await page.locator('.card').evaluateAll(all => all.map(one => one.getBoundingClientRect()).map(({ width, height }) => `${Math.round(width)}×${Math.round(height)}`));
    assert.equal(new Set(boxes).size, 1, `the cards are even: ${boxes}`);
    await accessible(page, 'the cards');
    await page.waitForResponse(/page=state.json/); // the next one
    assert.deepEqual([...methods], ['GET']);
    await close(page);
  },

  async 'the page at / finds tools, and has what clients need'() {
    const page = await open(`${gateway}/`);
    await page.selectOption('#client', 'Claude Code'); // the page has kept what a step before has chosen
    await press(page, 'Copy for Claude Code: bookshop');
    assert.equal(await copied(page), `claude mcp add --scope user --transport http bookshop ${gateway}/bookshop/mcp`);
    await page.selectOption('#client', 'Cursor');
    await press(page, 'Copy all for Cursor');
    assert.deepEqual(JSON.parse(await copied(page)).mcpServers, { mcp: { url: `${gateway}/mcp` } });
    await page.reload();
    await page.getByRole('button', { name: 'Copy for Cursor: demo' }).waitFor();
    await page.selectOption('#client', 'Claude Code');
    await page.keyboard.press('Tab');
    await page.keyboard.press('/');
    await page.keyboard.type('cover show');
    const tool = page.locator('.tools li', { hasText: 'in bookshop' }).getByRole('link', { name: 'Show a cover' });
    await tool.waitFor();
    await accessible(page, 'the tools that fit');
    await page.getByLabel('Find a tool of any server').fill('nothing like this');
    await sees(page, 'No tool fits');
    await page.getByLabel('Find a tool of any server').fill('cover');
    await tool.click();
    await ready(page);
    assert.match(page.url(), /\/bookshop\/mcp#tool=cover/);
    await page.getByRole('heading', { name: 'Show a cover' }).filter({ visible: true }).first().waitFor();
    await close(page);
  },

  async 'the page at / is dark for those who want that, and fits each width'() {
    const page = await open(`${gateway}/`);
    await card(page, 'hostile').waitFor();
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.notEqual(await background(), light);
    for (const [width, height, columns] of [[1280, 800, 3], [1920, 1080, 5], [390, 844, 1]]) {
      await page.setViewportSize({ width, height });
      const fits = async what => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${width} px: ${what} too wide`);
      await fits('the cards are');
      const lefts = await page.locator('.card').evaluateAll(all => all.map(one => Math.round(one.getBoundingClientRect().left)));
      assert.equal(new Set(lefts).size, columns, `${width} px: cards beside one another`);
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await accessible(page, `the cards, ${width} px, ${colorScheme}`);
      }
      await page.getByLabel('Find a tool of any server').fill('img');
      await page.locator('.found h2').waitFor();
      await fits('what is found is');
      await page.getByLabel('Find a tool of any server').fill('');
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await close(page);
  },

  async 'a server that answers from memory has one name on all pages'() {
    writeFileSync(slowWaitsFor, '');
    const first = await open(`${gateway}/slow/mcp`);
    await ready(first);
    await first.getByRole('button', { name: 'Resources (2)', exact: true }).waitFor(); // the gateway knows them too
    await first.close({ runBeforeUnload: true });
    const landing = await open(`${gateway}/`), status = await open(`${admin}/status`);
    await card(landing, 'slow').locator('.mark').getByText('cached', { exact: true }).waitFor();
    await card(landing, 'slow').getByText(/^8 tools.* · starts with the first call$/).waitFor();
    await accessible(landing, 'a server that is cached');
    await status.locator('tr', { has: status.locator('#s-slow') }).locator('.mark').getByText('cached', { exact: true }).waitFor();
    await accessible(status, 'the status page');
    await close(landing);
    await close(status);
    const page = await open(`${gateway}/slow/mcp`);
    await page.locator('.headline.resting .mark').getByText('Cached: starts with the first call', { exact: true }).waitFor();
    await accessible(page, 'a page that is cached');
    await close(page);
  },

  async 'the page of a view says what its servers do, like the page at /'() {
    const page = await open(`${gateway}/mcp`);
    await ready(page);
    await press(page, 'About');
    await page.getByRole('heading', { name: 'Servers of this view' }).waitFor();
    await page.getByText('Where each tool comes from').click();
    await page.locator('.drawer li', { hasText: 'bookshop__find_books' }).getByText('from bookshop, there find_books').waitFor();
    await page.locator('.drawer li', { hasText: 'broken' }).getByText('the database is down').first().waitFor();
    await accessible(page, 'the servers of a view');
    await close(page);
  },

  async 'the page of a server says which of its rules meets nothing'() {
    const page = await open(`${gateway}/demo/mcp`);
    await ready(page);
    await press(page, 'About');
    await page.getByRole('heading', { name: 'Warnings about the rules' }).waitFor();
    await page.getByText('exclude "delete_*" meets nothing that the server lists').waitFor();
    await accessible(page, 'the warnings of a server');
    await close(page);
  },

  async 'the page at / asks for a token, and copies none'() {
    const page = await open(`${locked}/`);
    await page.locator('.card').getByText('wants a token').waitFor();
    await accessible(page, 'the card of a server that wants a token');
    await page.getByRole('textbox', { name: 'Token' }).fill('not-the-token');
    await press(page, 'Show');
    await sees(page, 'The gateway does not take this token');
    await page.getByRole('textbox', { name: 'Token' }).fill(token);
    await press(page, 'Show');
    await page.locator('.card').getByText('wants a token').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^Copy for Claude Code:/ }).click();
    const text = await copied(page);
    assert.ok(text.includes('Bearer TOKEN') && !text.includes(token), text);
    await page.locator('.card h2 a').click();
    await ready(page); // the page of the server has the token
    await close(page);
  },
};
