// The keyboard, the themes, a phone, and the pictures of the documentation.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { answer, accessible, close, gateway, images, open, press, ready, sees, tool } from './tab.mjs';

export const steps = {
  async 'the keyboard is enough'() {
    const page = await open(`${gateway}/demo/mcp`);
    await ready(page);
    await page.locator('.list button').first().waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to content');
    for (let i = 0; i < 40 && !(await focused()).startsWith('echo'); i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
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
    await page.setViewportSize({ width: 320, height: 320 });
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    const card = await page.locator('.ask').boundingBox();
    assert.ok(card.height > 320 && card.y >= 0 && card.y < 40, `an elicitation that is taller than the screen begins at ${card.y} of ${card.height}`);
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
    const shot = async (page, name) => {
      for (const part of ['Prompts (1)', 'Resources (2)']) await page.getByRole('button', { name: part, exact: true }).waitFor();
      await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
      const labels = await page.locator('h1, h2, h3, legend, label, button, a').filter({ visible: true }).evaluateAll(all =>
        all.filter(one => !one.closest('.wire')).map(one => (one.tagName === 'LABEL' ? one.firstChild : one).textContent.trim()));
      const still = labels.map(label => label.replace(/\d+(\.\d+)? m?s\b|\d+:\d+:\d+(\s[AP]M)?/g, 'TIME'));
      words += `${[`page-${name}.png`, ...new Set(still)].filter(Boolean).join('\n  ')}\n`;
      if (images) await page.screenshot({ path: `${images}/page-${name}.png` });
    };
    const page = await open(`${gateway}/bookshop/mcp`);
    await page.setViewportSize({ width: 1200, height: 960 });
    await ready(page);
    await tool(page, 'Show a cover');
    await press(page, 'Call');
    await answer(page).locator('img').waitFor();
    await shot(page, 'light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.selectOption('#way', 'sse');
    await ready(page);
    await press(page, 'Wire');
    await sees(page, 'tools/list');
    await shot(page, 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 390, height: 1100 });
    await page.selectOption('#way', 'streamable');
    await ready(page);
    await press(page, 'Tools (8)');
    await tool(page, 'Order a book');
    await press(page, 'Call');
    await sees(page, 'Where shall it go?');
    await shot(page, 'phone');
    if (images) writeFileSync(file, words);
    assert.equal(words, readFileSync(file, 'utf8'), 'the pictures in docs/images are old: ONLY=screenshots go test -tags all -run TestPageInABrowser ./e2e -images');
    await close(page);
  },
};
