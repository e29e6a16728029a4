// A remote server at which nobody is logged in.
import assert from 'node:assert/strict';
import { accessible, close, open, press, ready, remote } from './tab.mjs';

export const steps = {
  async 'a person logs in with the button of the page, and the browser comes back to it'() {
    const page = await open(remote);
    await ready(page);
    await press(page, 'About');
    const button = page.getByRole('button', { name: 'Log in', exact: true }).filter({ visible: true }).first();
    await button.waitFor();
    await accessible(page, 'a server that waits for a login');
    const passed = [];
    page.on('framenavigated', frame => passed.push(frame.url()));
    await button.click();
    await press(page, 'Connect'); // the issuer has led back to the page, which connects to nothing by itself then
    await page.locator('.list button', { hasText: 'echo' }).first().waitFor(); // a tool of the server
    assert.equal(page.url(), remote);
    assert.deepEqual(passed.filter(url => /[?&](code|state)=/.test(url)), [], 'no page that was shown has the code in its address');
    await page.getByRole('button', { name: 'Log in', exact: true }).first().waitFor({ state: 'hidden' });
    await close(page);
  },
};
