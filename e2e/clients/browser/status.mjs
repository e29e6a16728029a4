// The pictures of the status page, of five servers in different conditions: the test of the page has written them down.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { accessible, admin, close, images, open, sharp } from './tab.mjs';

const file = name => new URL(`../../../${name}`, import.meta.url);
const overview = readFileSync(file('gateway/internal/statuspage/testdata/overview.html'), 'utf8');

export const steps = {
  async 'screenshots of the status page, which fits each width'() {
    const page = await open('about:blank', /^$/, sharp);
    await page.route(`${admin}/status`, route => route.fulfill({ contentType: 'text/html', body: overview }));
    await page.goto(`${admin}/status`);
    await page.locator('#live-state').getByText('live', { exact: true }).waitFor();
    for (const [width, height] of [[1280, 800], [1920, 1080], [390, 844]]) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await accessible(page, `the status page, ${width} px, ${colorScheme}`);
      }
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${width} px is too wide`);
    }

    // The pictures end below the servers. A failure that is too long for them is cut at its end.
    await page.setViewportSize({ width: 1100, height: 900 });
    const cell = page.locator('tr.failing [data-label="Last failure"] bdi');
    assert.match(await cell.innerText(), /^the server did not answer initialize: .*…$/);
    const parts = page.locator('h1, dt, h2#servers, #servers ~ .scroll thead th, #servers ~ .scroll tbody th, #servers ~ .scroll .mark, #servers ~ .scroll .long bdi');
    const words = await parts.evaluateAll(all => all.map(one => one.innerText.replace(/\s+/g, ' ').trim()));
    const text = `status-light.png, status-dark.png\n${[...new Set(words)].map(line => `  ${line}\n`).join('')}`;
    const { y, height } = await page.locator('section', { has: page.locator('#servers') }).boundingBox();
    for (const colorScheme of ['light', 'dark']) {
      if (!images) break;
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${images}/status-${colorScheme}.png`, clip: { x: 0, y: 0, width: 1100, height: Math.ceil(y + height + 20) } });
    }
    if (images) writeFileSync(file('docs/images/status.txt'), text);
    assert.equal(text, readFileSync(file('docs/images/status.txt'), 'utf8'), 'the pictures in docs/images are old: ONLY=screenshots go test -tags all -run TestPageInABrowser ./e2e -images');
    await page.emulateMedia({ colorScheme: 'light' });
    await close(page);
  },
};
