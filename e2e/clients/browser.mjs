// Uses the page of each server as people do: the steps are in browser/. Its argument is what tab.mjs says.
// It fails with what is wrong. ONLY takes only the steps whose names match it, a regular expression.
import assert from 'node:assert/strict';
import { steps as calls } from './browser/calls.mjs';
import { steps as head } from './browser/head.mjs';
import { steps as hostile } from './browser/hostile.mjs';
import { steps as landing } from './browser/landing.mjs';
import { steps as login } from './browser/login.mjs';
import { steps as look } from './browser/look.mjs';
import { steps as server } from './browser/server.mjs';
import { steps as session } from './browser/session.mjs';
import { steps as status } from './browser/status.mjs';
import { end, wrong } from './browser/tab.mjs';

const only = new RegExp(process.env.ONLY ?? '');
for (const [name, step] of Object.entries({ ...head, ...calls, ...server, ...session, ...hostile, ...landing, ...status, ...login, ...look })) {
  if (!only.test(name)) continue;
  try {
    await step();
    assert.deepEqual(wrong, []);
    console.log(`${name}: passed`); // tells where a run stands that is stopped
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  }
}
await end();
