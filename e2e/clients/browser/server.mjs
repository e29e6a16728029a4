// The server asks and logs; its prompts and resources.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { answer, accessible, close, copied, gateway, open, passed, press, ready, sees, tool } from './tab.mjs';

export const steps = {
  async 'the server asks, and logs'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    assert.match(await page.locator('.ask').innerText(), /For order, called at \d/);
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
    await page.getByLabel('From', { exact: true }).selectOption('error');
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
    assert.equal(await page.getByLabel('From', { exact: true }).inputValue(), '', 'nothing was asked for');
    await page.getByLabel('From', { exact: true }).selectOption('debug');
    await sees(page, 'The server sends messages from debug on.');
    await page.selectOption('#way', 'sse-own'); // another session is asked for the same
    await ready(page);
    await press(page, 'Wire');
    await passed(page, 'resources/subscribe', 'shop://hours');
    await passed(page, 'logging/setLevel', 'debug');
    await press(page, 'Resources (2)');
    assert.ok(await page.getByLabel('follow its changes').isChecked());
    await page.getByLabel('follow its changes').uncheck();
    await press(page, 'Wire');
    await passed(page, 'resources/unsubscribe', 'shop://hours');
    await press(page, 'Resources (2)');
    await tool(page, 'A book');
    await page.getByLabel('id').fill('pop');
    await page.locator('datalist option[value="Sea of Poppies"]').last().waitFor({ state: 'attached' });
    await page.getByLabel('id').fill('a b/1');
    await page.getByLabel('part', { exact: true }).fill('2');
    await press(page, 'Read');
    await sees(page, 'the book shop://books/a%20b%2F1?part=2');
    await accessible(page, 'a resource');
    await close(page);
  },

  async 'prompts, resources and templates have addresses, which run nothing'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await press(page, 'Prompts (1)');
    await tool(page, 'Review a book');
    await page.getByLabel('title').fill('Sea of Poppies');
    await press(page, 'Copy link');
    const links = [[await copied(page), 'prompts/get', other => other.getByLabel('title').inputValue(), 'Sea of Poppies']];
    await press(page, 'Resources (2)');
    await tool(page, 'Opening hours');
    await sees(page, /open from/);
    await press(page, 'Copy link');
    links.push([await copied(page), 'resources/read', other => other.locator('.detail:visible p code').innerText(), 'shop://hours']);
    await tool(page, 'A book');
    await page.getByLabel('id').fill('7');
    await page.waitForFunction(() => location.hash.includes('id=7'));
    await press(page, 'Copy link');
    assert.equal(await copied(page), page.url());
    links.push([await copied(page), 'resources/read', other => other.getByLabel('id').inputValue(), '7']);
    await close(page);
    for (const [link, method, read, want] of links) {
      const other = await open(link);
      await ready(other);
      await other.getByRole('button', { name: 'Copy link' }).filter({ visible: true }).waitFor();
      assert.equal(await read(other), want, link);
      assert.equal(await other.locator('.wire .method', { hasText: method }).count(), 0, 'nothing is run');
      assert.equal(other.url(), link, 'the tool that the page has chosen is not in its address');
      await close(other);
    }
  },

  async 'a result is copied, and saved'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    await press(page, 'Copy the result');
    assert.deepEqual(JSON.parse(await copied(page)).content.map(block => block.type), ['text', 'image', 'audio', 'resource_link', 'resource']);
    const download = page.waitForEvent('download');
    await press(page, 'Download the result');
    assert.equal((await download).suggestedFilename(), 'cover.json');
    assert.equal(JSON.parse(readFileSync(await (await download).path(), 'utf8')).content.length, 5);
    await tool(page, 'Quote');
    await page.getByRole('textbox', { name: /^text/ }).fill('as it is');
    await press(page, 'Call');
    await answer(page).locator('.result').getByText('as it is').waitFor();
    await press(page, 'Copy the result');
    assert.equal(await copied(page), 'as it is', 'a text is copied as a text');
    await close(page);
  },

  async 'a question names the call that asks, also beside others that run'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    for (const way of ['streamable', 'sse-own']) {
      await page.selectOption('#way', way);
      await ready(page);
      await tool(page, 'Restock');
      await page.getByLabel('shelves').fill('1000000');
      await press(page, 'Call');
      await sees(page, /^shelf \d+$/);
      await tool(page, 'Order a book');
      await press(page, 'Call');
      await page.locator('.ask p').first().waitFor();
      assert.match(await page.locator('.ask p').first().innerText(), /^For restock, called at .*, or order, called at /, `${way}: the server does not say which`);
      await press(page, 'Decline');
      await page.locator('.past button', { hasText: /restock.*running since/is }).click();
      await press(page, 'Cancel');
    }
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

  async 'what the server asks for has the types of its schema'() {
    const page = await open(`${gateway}/workshop/mcp`);
    await ready(page);
    await tool(page, 'measure');
    await press(page, 'Call');
    const card = page.locator('.ask');
    await card.getByText('What shall be made?').waitFor();
    const field = name => card.getByLabel(name, { exact: false }).first();
    await field('day').fill('2026-02-28');
    await field('moment').evaluate(input => { input.value = '12345-01-01T10:00'; });
    await press(page, 'Answer');
    await card.getByText('This is not a time that can be sent.').waitFor();
    await field('moment').fill('2026-02-28T10:30:15');
    await field('mail').fill('ann@books.example');
    await field('size').selectOption('large');
    await field('colour').selectOption('Blue');
    await card.getByLabel('ribbon').check();
    await card.getByLabel('card').check();
    await field('gift').check();
    await field('wrapped').selectOption('false');
    await field('copies').fill('9');
    assert.equal(await field('price').inputValue(), '1.5', 'the default');
    await field('price').fill('0.25');
    await accessible(page, 'an elicitation of each kind');
    await press(page, 'Answer');
    for (const fault of ['Its length is 2, and may be at most 1.', 'It is 9, and may be at most 5.', 'It is 0.25, and has to be at least 0.5.']) await card.getByText(fault).waitFor();
    await card.getByLabel('card').uncheck();
    await field('copies').fill('3');
    await field('price').fill('2.5');
    await press(page, 'Answer');

    // A required text that is empty is a fault, unless somebody wants it empty.
    const note = card.locator('.field', { hasText: 'Note' });
    await note.locator('.fault').getByText('It is required.').waitFor();
    assert.equal(await card.locator('.fault:not(:empty)').count(), 1, 'nothing else is wrong');
    await note.getByLabel('send empty text').check();
    await press(page, 'Answer');
    await answer(page).getByText('"accept"').first().waitFor();
    // The result is a tree: the wire has it as the server got it.
    const moment = await page.evaluate(() => new Date('2026-02-28T10:30:15').toISOString());
    assert.deepEqual(await sent(page, 'accept'), { day: '2026-02-28', moment, mail: 'ann@books.example', size: 'L', colour: '#00f', extras: ['ribbon'], gift: true, wrapped: false, copies: 3, price: 2.5, note: '' });

    // What may be left out is left out.
    await press(page, 'Tools (42)');
    await press(page, 'Call');
    await field('day').fill('2026-03-01');
    await note.getByRole('textbox').fill('soon');
    await field('size').selectOption('small');
    await field('copies').fill('1');
    await field('price').fill('');
    await press(page, 'Answer');
    await card.waitFor({ state: 'detached' });
    assert.deepEqual(await sent(page, 'accept'), { note: 'soon', day: '2026-03-01', size: 'S', gift: false, copies: 1 });
    await press(page, 'Tools (42)');
    for (const [name, action] of [['Decline', 'decline'], ['Cancel', 'cancel']]) {
      await press(page, 'Call');
      await card.getByRole('button', { name, exact: true }).click();
      await answer(page).getByText(`"${action}"`).first().waitFor();
    }
    await close(page);
  },

  async 'the log is filtered by its text beside the level'() {
    const page = await open(`${gateway}/workshop/mcp`);
    await ready(page);
    await tool(page, 'report');
    await press(page, 'Call');
    await answer(page).getByText('reported').first().waitFor();
    await press(page, 'Log');
    const lines = page.locator('.log > li'), filter = page.getByLabel('Filter').filter({ visible: true });
    const shown = async (...wanted) => {
      await page.waitForFunction(n => document.querySelectorAll('.log > li').length === n, wanted.length);
      for (const [i, words] of wanted.entries()) assert.match(await lines.nth(i).innerText(), words);
    };
    await shown(/info saw the blade is new/, /error saw the blade is dull/, /error glue[^]*"dry"/);
    await filter.fill('BLADE');
    await shown(/new/, /dull/);
    await page.getByLabel('From', { exact: true }).selectOption('error');
    await shown(/dull/);
    await filter.fill('glue'); // the name of the logger
    await shown(/"dry"/);
    await filter.fill('dry'); // what is inside
    await shown(/"dry"/);
    await filter.fill('nothing');
    await shown(/There are none\./);
    await press(page, 'Tools (42)');
    await press(page, 'Call'); // what comes now is filtered too
    await answer(page).getByText('reported').first().waitFor();
    await press(page, 'Log');
    await shown(/There are none\./);
    await filter.fill('dull');
    await shown(/dull/, /dull/);
    await close(page);
  },

  async 'a server that dies in a call says why, and the next call has another'() {
    const page = await open(`${gateway}/workshop/mcp`);
    for (const way of ['streamable', 'sse', 'sse-own']) {
      await page.selectOption('#way', way);
      await ready(page);
      await tool(page, 'break');
      await press(page, 'Call');
      await answer(page).locator('.result.failed').getByText(/the bench has collapsed/).first().waitFor();
      await accessible(page, 'a server that has died');
      await tool(page, 'look');
      await press(page, 'Call');
      await answer(page).getByText('all is there').first().waitFor();
      await page.locator('.headline.ready').waitFor();
    }
    await close(page);
  },
};

// sent returns the newest answer to an elicitation with an action, as the wire has it.
async function sent(page, action) {
  await press(page, 'Wire');
  const download = page.waitForEvent('download');
  await press(page, 'Download');
  const entries = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
  return entries.filter(entry => entry.out && entry.text).map(entry => JSON.parse(entry.text).result).findLast(result => result?.action === action).content;
}
