// The keyboard, the themes, a phone, and the pictures of the documentation.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { answer, accessible, close, gateway, images, open, passed, press, ready, sees, sharp, tool } from './tab.mjs';

// shown counts the elements of a selector that are in view as a whole: in the window, and in all that scrolls around.
const shown = (page, selector) => page.locator(selector).evaluateAll(all => all.filter(one => {
  const box = one.getBoundingClientRect();
  let { top, bottom, left, right } = { top: 0, left: 0, bottom: innerHeight, right: innerWidth };
  for (let around = one.parentElement; around; around = around.parentElement) {
    if (!/auto|scroll|hidden/.test(getComputedStyle(around).overflowY)) continue;
    const outer = around.getBoundingClientRect();
    top = Math.max(top, outer.top);
    bottom = Math.min(bottom, outer.bottom);
    left = Math.max(left, outer.left);
    right = Math.min(right, outer.right);
  }
  return box.width > 0 && box.height > 0 && box.top >= top - 1 && box.bottom <= bottom + 1 && box.left >= left - 1 && box.right <= right + 1;
}).length);

// twelve opens a page of a server with twelve tools, the first of which has a form with two fields.
async function twelve() {
  const page = await open('about:blank'), named = (name, more) => ({ name, description: `The tool ${name} does what its name says, in a sentence that is too long for a line.`, inputSchema: { type: 'object' }, ...more });
  const about = { type: 'string', description: 'A text that says what it is for' };
  const all = {
    'tools/list': { tools: [named('weigh', { inputSchema: { type: 'object', required: ['what'], properties: { what: about, where: about } } }), ...Array.from({ length: 11 }, (_, i) => named(`tool_${i}`))] },
    'tools/call': { content: [{ type: 'text', text: JSON.stringify({ weight: 12, unit: 'kg', at: ['here', 'there'] }) }] },
  };
  await page.route(`${gateway}/bookshop/mcp`, route => {
    const { id, method } = route.request().postDataJSON() ?? {};
    return all[method] ? route.fulfill({ json: { jsonrpc: '2.0', id, result: all[method] } }) : route.continue();
  });
  await page.goto(`${gateway}/bookshop/mcp`);
  await ready(page);
  await page.getByRole('button', { name: 'Tools (12)', exact: true }).waitFor();
  return page;
}

export const steps = {
  async 'ten tools, a form with two fields and its result are in view at once, with the dock'() {
    const page = await twelve();
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.equal(new URL(page.url()).hash, '', 'the page has chosen the tool by itself');
    await page.getByRole('textbox', { name: /^what/ }).fill('a book');
    await press(page, 'Call');
    await answer(page).getByText('"kg"').first().waitFor();
    assert.ok((await page.locator('#top').boundingBox()).height <= 56, 'the bar');
    assert.ok(await shown(page, '.list > li > button[aria-current], .side > .list > li > button') >= 10, 'ten tools');
    assert.equal(await shown(page, '.detail .field'), 2, 'the fields');
    const gaps = await page.locator('.detail .field:has(.about)').evaluateAll(all => all.map(one =>
      one.querySelector('.about').getBoundingClientRect().top - one.querySelector('textarea').getBoundingClientRect().bottom));
    assert.ok(gaps.length === 2 && gaps.every(gap => gap >= 6), `the help keeps 6 px from its field: ${gaps}`);
    for (const part of ['.detail form button[type=submit]', '.answer .result', '.dock', '.dock .titles']) assert.equal(await shown(page, part), 1, part);
    assert.ok(await shown(page, '.wire > li') >= 3, 'exchanges');
    assert.deepEqual([...new Set(await page.locator('.side:visible > .list > li').evaluateAll(all => all.map(one => one.offsetHeight)))].length, 1, 'the rows are even');
    assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 800, 'the panes scroll, not the page');
    await close(page);
  },

  async 'at each width, light and dark, all parts are there'() {
    const page = await twelve();
    await press(page, 'Call');
    await sees(page, 'Not called: 1 fault in the arguments.');
    for (const [width, height] of [[1280, 800], [1920, 1080], [900, 640], [390, 844]]) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await accessible(page, `${width} px, ${colorScheme}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${width} px is too wide`);
      }
      assert.ok(await page.locator('.scroller').evaluate(one => one.scrollWidth <= one.clientWidth), `${width} px: the wire is too wide`);
      if (width >= 768) assert.ok((await page.locator('#top').boundingBox()).height <= 56, `${width} px: the bar is one row`);
      const [list, detail, dock] = await Promise.all(['.side:visible', '.detail:visible', '.dock'].map(part => page.locator(part).boundingBox()));
      if (width < 768) assert.ok(list.y + list.height <= detail.y + 1 && detail.y + detail.height <= dock.y + 1, 'the list, the tool, the dock, one below the other');
      else assert.ok(list.x + list.width <= detail.x + 1 && detail.y + detail.height <= dock.y + 1 && dock.x >= detail.x - 1, 'the list beside the tool, the dock below the tool');
    }
    await close(page);
  },

  async 'the page keeps what people have chosen of its look'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    const dock = page.locator('.dock'), height = async () => Math.round((await dock.boundingBox()).height), scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    await press(page, 'Dark');
    assert.equal(await scheme(), 'dark');
    const before = await height(), edge = await page.locator('.edge').boundingBox();
    await page.mouse.move(edge.x + 100, edge.y + 4);
    await page.mouse.down();
    await page.mouse.move(edge.x + 100, edge.y - 96);
    await page.mouse.up();
    assert.equal(await height(), before + 100);
    await page.locator('.edge').focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await height(), before + 76);
    await press(page, 'Log');
    await page.reload();
    await ready(page);
    assert.deepEqual([await scheme(), await height(), await page.getByRole('button', { name: 'Log', exact: true }).getAttribute('aria-pressed')], ['dark', before + 76, 'true']);
    await press(page, 'Fold the dock');
    await page.reload();
    await ready(page);
    assert.ok(await height() < 60, 'the dock stays collapsed');
    await press(page, 'Wire');
    await passed(page, 'tools/list');
    await press(page, 'Dark');
    assert.equal(await scheme(), 'light');
    await page.evaluate(() => localStorage.clear());
    await close(page);
  },

  async 'no ring is around what the mouse has chosen'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Show a cover');
    assert.ok(await page.evaluate(() => document.activeElement.matches('.detail')), 'the keyboard goes on there');
    assert.equal(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
    await close(page);
  },

  async 'the keyboard is enough'() {
    const page = await open(`${gateway}/demo/mcp`);
    await ready(page);
    await page.locator('.list button').first().waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to content');
    for (let i = 0; i < 40 && !(await focused()).startsWith('echo'); i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.press('/'); // finds
    await page.keyboard.type('e');
    await page.keyboard.press('ArrowDown');
    assert.match(await focused(), /^echo/);
    await page.keyboard.press('ArrowDown');
    assert.match(await focused(), /^sleep/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'sleep' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('cho');
    await page.keyboard.press('Enter'); // chooses the first that fits
    await page.getByRole('heading', { name: 'echo' }).waitFor();
    for (let i = 0; i < 40 && await page.evaluate(() => document.activeElement?.tagName) !== 'TEXTAREA'; i++) await page.keyboard.press('Tab');
    await page.keyboard.type('by keys');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('alone');
    await page.keyboard.press('Enter');
    await answer(page).getByText(/by keys\s+alone/).first().waitFor();
    for (let i = 0; i < 9 && await focused() !== 'Call'; i++) await page.keyboard.press('Tab');
    const before = await answer(page).locator('.result').elementHandle();
    await page.keyboard.press('Enter');
    await before.waitForElementState('hidden');
    await answer(page).locator('.result').waitFor();
    assert.equal(await focused(), 'Call', 'the focus is where it was before the call');
    await close(page);
  },

  async 'it is dark for those who want that, and fits a phone'() {
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.notEqual(await background(), light);
    await accessible(page, 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 390, height: 844 });
    for (const [part, name] of [['Tools (8)', 'tools'], ['Prompts (1)', 'prompts'], ['Resources (2)', 'resources'], ['Log', 'log'], ['Wire', 'wire']]) {
      await press(page, part);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390, `${name} is too wide`);
    }
    await press(page, 'Tools (8)');
    await page.setViewportSize({ width: 320, height: 280 });
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    const card = await page.locator('.ask').boundingBox();
    assert.ok(card.height > 280 && card.y >= 0 && card.y < 40, `an elicitation that is taller than the screen begins at ${card.y} of ${card.height}`);
    await press(page, 'Decline');
    await page.setViewportSize({ width: 390, height: 844 });
    const other = await open(`${gateway}/hostile/mcp`);
    await other.setViewportSize({ width: 390, height: 844 });
    await ready(other);
    await tool(other, '<img src=x');
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth) <= 390, 'long names make it too wide');
    await close(other);
    await close(page);
  },

  // Beside the screenshots are the words of what can be read and pressed on them: they tell that a picture is old.
  async 'screenshots for the documentation'() {
    const file = new URL('../../../docs/images/page.txt', import.meta.url);
    let words = '';
    const shot = async (page, name, part = page.locator('body')) => {
      for (const part of ['Prompts (1)', 'Resources (2)']) await page.getByRole('button', { name: part, exact: true }).waitFor();
      await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
      const labels = await part.locator('h1, h2, h3, legend, label, button, a').filter({ visible: true }).evaluateAll(all =>
        all.map(one => (one.tagName === 'LABEL' ? one.firstChild : one).textContent.trim()));
      const still = labels.map(label => label.replace(/\d+(\.\d+)? m?s\b|\d+:\d+:\d+(\s[AP]M)?/g, 'TIME'));
      words += `${[`page-${name}.png`, ...new Set(still)].filter(Boolean).join('\n  ')}\n`;
      if (images) await (name === 'tool' ? page : part).screenshot({ path: `${images}/page-${name}.png` });
    };
    const first = await open(`${gateway}/bookshop/mcp`, /^$/, sharp);
    await first.setViewportSize({ width: 900, height: 640 }); // as wide as README is
    await ready(first);
    await tool(first, 'Quote');
    await first.getByRole('textbox', { name: /^text/ }).fill('{"title": "Sea of Poppies", "price": 9.9}');
    await press(first, 'Call');
    await answer(first).getByText('"Sea of Poppies"').first().waitFor();
    await shot(first, 'tool');
    await close(first);
    const page = await open(`${gateway}/bookshop/mcp`);
    await ready(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 1200, height: 1160 });
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await page.getByLabel('Street').fill('Quay 1');
    await press(page, 'Answer');
    await answer(page).getByText('"accept"').first().waitFor();
    await page.locator('.edge').focus();
    for (let i = 0; i < 30; i++) await page.keyboard.press('ArrowUp');
    await page.getByLabel('Show').filter({ visible: true }).selectOption('received');
    await page.locator('.wire summary', { hasText: 'elicitation/create' }).first().click();
    await page.locator('.wire .message').getByText('"Quay 1"').first().waitFor();
    await shot(page, 'wire', page.locator('.dock'));
    await page.evaluate(() => localStorage.clear());
    await page.emulateMedia({ colorScheme: 'light' });
    await press(page, 'Connect a client');
    await page.selectOption('#client', 'VS Code');
    await page.setViewportSize({ width: 1200, height: 480 });
    await shot(page, 'connect', page.locator('.drawer'));
    await page.selectOption('#client', 'Claude Code');
    await press(page, 'Close');
    await page.setViewportSize({ width: 390, height: 844 });
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    await shot(page, 'phone', page.locator('.ask'));
    await press(page, 'Decline');
    if (images) writeFileSync(file, words);
    assert.equal(words, readFileSync(file, 'utf8'), 'the pictures in docs/images are old: ONLY=screenshots go test -tags all -run TestPageInABrowser ./e2e -images');
    await close(page);
  },
};
