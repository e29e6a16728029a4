// Tools: their forms, calls and results.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { answer, accessible, close, copied, gateway, open, press, ready, sees, tool } from './tab.mjs';

export const steps = {
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
    await answer(page).getByText('Matches the output schema').first().waitFor();
    await answer(page).getByText('"Sea of Poppies"').first().waitFor();
    await press(page, 'Copy as JSON-RPC');
    const sent = { words: 'sea', limit: 10, genre: 'poetry', inStock: true, since: '2020-02-29', authors: ['Murdoch'], price: { to: 20.5 }, more: [1, 2] };
    assert.deepEqual(JSON.parse(await copied(page)).params, { name: 'find_books', arguments: sent });
    await press(page, 'Copy as curl');
    assert.match(await copied(page), new RegExp(`^curl ${gateway}/bookshop/mcp -H 'Content-Type: application/json' -d '\\{"jsonrpc"`));

    // The address shows the call to somebody else, and runs nothing.
    await press(page, 'Copy link');
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

  async 'a row that is removed takes nothing but itself along'() {
    const page = await open(`${gateway}/workshop/mcp`);
    await ready(page);
    await tool(page, 'cut');
    const row = name => page.getByRole('group', { name, exact: true }), faults = page.locator('.form .fault p');
    assert.equal(await page.getByText('required', { exact: true }).filter({ visible: true }).count(), 1, 'boards alone');
    for (const wood of ['oak', 'x', 'ash']) {
      await press(page, 'Add to boards');
      await page.getByLabel('wood').last().fill(wood);
    }
    await row('boards 2').getByText('above 3 to 9').waitFor();
    await row('boards 2').getByLabel('screws').fill('3');
    await row('boards 3').getByLabel('screws').fill('4.5');
    await press(page, 'Remove boards 1');
    assert.equal(await row('boards 3').count(), 0, 'the others move up');
    assert.equal(await row('boards 2').getByLabel('wood').inputValue(), 'ash');
    await press(page, 'Call');
    await sees(page, 'Not called: 3 faults in the arguments.');
    await row('boards 1').getByText('Its length is 1, and has to be at least 2.').waitFor();
    await row('boards 1').getByText('It is 3, and has to be above 3.').waitFor();
    await row('boards 2').getByText('It is of the type number, and has to be integer.').waitFor();
    await row('boards 1').getByLabel('wood').fill('elm');
    await row('boards 1').getByLabel('screws').fill('9007199254740993');
    await press(page, 'Call');
    await row('boards 1').getByText('This page cannot send an integer this large: it would be rounded.').waitFor();
    assert.equal(await faults.count(), 1, 'the faults from before are gone');
    await row('boards 1').getByLabel('screws').fill('4');
    await row('boards 2').getByLabel('screws').fill('');
    await page.getByLabel('begin').fill('09:30');
    await press(page, 'Call');
    await answer(page).getByText('ok after').first().waitFor();
    await press(page, 'Copy as JSON-RPC');
    assert.deepEqual(JSON.parse(await copied(page)).params.arguments, { boards: [{ wood: 'elm', screws: 4 }, { wood: 'ash' }], begin: '09:30:00Z' });
    await press(page, 'Read it'); // the link in the result
    await sees(page, 'the book shop://boards');
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

  async 'an empty required text is a fault, unless somebody wants it empty'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Quote');
    const empty = page.getByLabel('send empty text');
    await press(page, 'Call');
    await sees(page, 'Not called: 1 fault in the arguments.');
    await page.locator('.form .fault').getByText('It is required.').waitFor();
    await page.getByRole('textbox', { name: /^text/ }).fill('typed');
    await empty.waitFor({ state: 'hidden' }); // it is not empty
    await page.getByRole('textbox', { name: /^text/ }).fill('');
    await empty.check();
    await press(page, 'Call');
    await answer(page).getByText('(empty text)').waitFor();
    await page.getByLabel('as JSON', { exact: true }).check();
    assert.equal(await page.getByLabel('Arguments').inputValue(), '{\n  "text": ""\n}');
    await page.getByLabel('as JSON', { exact: true }).uncheck();
    assert.ok(await empty.isChecked());
    await close(page);
  },

  async 'what is long is shortened, and says so'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Quote');
    await page.getByRole('textbox', { name: /^text/ }).fill(JSON.stringify(Array.from({ length: 3000 }, (_, i) => `line ${i}`)));
    await press(page, 'Copy link');
    await sees(page, 'The arguments are too long for an address: it names the tool alone.');
    assert.equal(await copied(page), `${gateway}/bookshop/mcp#tool=quote`);
    await press(page, 'Call');
    const result = answer(page).locator('.result'), last = result.getByText('"line 2999"', { exact: true });
    await result.locator('summary', { hasText: '[3000]' }).first().click();
    await result.getByText('"line 0"', { exact: true }).first().waitFor();
    assert.equal(await last.count(), 0);
    while (await last.count() === 0) await result.getByRole('button', { name: /^\d+ more$/ }).first().click();
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
    assert.equal(await answer(page).locator('.result').count(), 0, 'it is said once');
    assert.equal(await answer(page).locator('.mark').getAttribute('class'), 'mark ', 'in grey');
    await press(page, 'Wire');
    await page.locator('.wire > li', { hasText: 'notifications/cancelled' }).getByText('tools/call restock', { exact: true }).waitFor();
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
    await answer(page).getByText('Does not match the output schema:').first().waitFor();
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

  async 'the history has the last twenty calls'() {
    const page = await open(`${gateway}/bookshop/mcp`), calls = page.locator('.past button');
    await ready(page);
    await tool(page, 'Quote');
    for (let i = 1; i <= 22; i++) {
      await page.getByRole('textbox', { name: /^text/ }).fill(`word ${i}`);
      await press(page, 'Call');
      await answer(page).locator('.result').getByText(`word ${i}`, { exact: true }).waitFor();
    }
    const twenty = async () => {
      await page.locator('summary', { hasText: '20 calls of this tab' }).waitFor();
      const words = (await calls.allInnerTexts()).map(text => Number(/word (\d+)/.exec(text)[1]));
      assert.deepEqual(words, Array.from({ length: 20 }, (_, i) => 22 - i), 'the newest first');
    };
    await twenty();
    await page.reload();
    await ready(page);
    await twenty();
    await calls.last().click();
    assert.equal(await page.getByRole('textbox', { name: /^text/ }).inputValue(), 'word 3');
    await press(page, 'Call'); // one more takes the place of the oldest
    await answer(page).locator('.result').getByText('word 3', { exact: true }).waitFor();
    assert.equal(await calls.count(), 20);
    assert.equal(await calls.filter({ hasText: 'word 3"' }).count(), 1);
    await close(page);
  },

  async 'hints, and the limits of clients that are broken, are shown'() {
    const page = await open(`${gateway}/workshop/mcp`);
    await ready(page);
    const hints = name => page.locator('.list button', { has: page.locator('b', { hasText: new RegExp(`^${name}`) }) }).filter({ visible: true }).locator('.hint').allTextContents();
    await page.locator('.list button').first().waitFor();
    assert.deepEqual(await hints('look'), [], 'what reads only destroys nothing');
    assert.deepEqual(await hints('burn'), ['destructive'], 'the list has no other badge');
    assert.deepEqual(await hints('break'), []);
    await tool(page, 'look');
    assert.deepEqual(await page.locator('.detail:visible h2 .hint').allTextContents(), ['reads only', 'idempotent']);
    assert.equal(await page.locator('.detail:visible .losses').count(), 0, 'a tool that fits all');

    const all = page.locator('.side:visible > div > .losses');
    await all.locator('summary', { hasText: /^\d+ client limits? broken$/ }).click();
    await all.getByText('takes 40 tools over all servers, and drops the rest silently').waitFor();
    await all.getByText(/takes 8000 characters of descriptions over all servers, and drops the rest silently; these have 8\d\d\d/).waitFor();
    await tool(page, 'saw_');
    const one = page.locator('.detail .losses');
    await one.locator('summary').click();
    await one.getByText('Claude Code cuts its description at 2048 characters').waitFor();
    await one.getByText(/^Claude Code does not take anyOf at the top of a schema: it /).waitFor();
    await one.getByText(/takes names of 60 characters with “workshop_” in front: it /).first().waitFor();
    await accessible(page, 'with the limits of clients');
    await close(page);
  },
};
