// Values are checked in a worker, which can be ended: a schema is the server's, and there are schemas and
// patterns that take for ever.
import { faults } from './schema.js';

// How many milliseconds a check may take, and a worker to be there.
const longestCheck = 2000, longestStart = 20000;

/** @type {Worker | undefined} */
let checker;
/** @type {Promise<unknown>} */
let before = Promise.resolve(); // the check before: there is one at a time

/**
 * checked returns what a value does not fulfil of a schema; undefined if that cannot be found out here, or
 * takes too long.
 * @param {unknown} value
 * @param {unknown} schema
 * @returns {Promise<import('./schema.js').Fault[] | undefined>}
 */
export function checked(value, schema) {
  const check = before.then(() => inWorker(value, schema));
  before = check;
  return check;
}

/**
 * @param {unknown} value
 * @param {unknown} schema
 * @returns {Promise<import('./schema.js').Fault[] | undefined>}
 */
function inWorker(value, schema) {
  return new Promise(resolve => {
    const worker = checker ??= newWorker();
    const giveUp = () => {
      worker.terminate();
      checker = undefined;
      resolve(undefined);
    };
    let clock = setTimeout(giveUp, longestStart);
    worker.onerror = giveUp;
    worker.onmessage = ({ data }) => {
      clearTimeout(clock);
      if (data === 'begun') clock = setTimeout(giveUp, longestCheck);
      else resolve(data.found);
    };
    try {
      worker.postMessage({ value, schema });
    } catch { // it is too deep to be sent
      clearTimeout(clock);
      resolve(undefined);
    }
  });
}

/** prepareChecks loads the script of the worker while the gateway is there. */
export function prepareChecks() {
  const worker = checker ??= newWorker();
  worker.onerror = () => { if (checker === worker) checker = undefined; };
}

/** @type {{ createScriptURL(url: string): any } | undefined} */
let policy; // the one that the Content-Security-Policy of the page allows

/** newWorker runs the script of the page, which is a client only where there is a document. */
function newWorker() {
  policy ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy('worker', { createScriptURL: (/** @type {string} */ url) => url });
  const url = '?page=script.js';
  return new Worker(policy ? policy.createScriptURL(url) : url, { type: 'module' });
}

if ('WorkerGlobalScope' in globalThis) {
  globalThis.onmessage = ({ data: { value, schema } }) => {
    postMessage('begun');
    postMessage({ found: faults(value, schema) });
  };
}
