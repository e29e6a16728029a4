// The form that asks a visitor for a token of the gateway.
import { el, show } from './dom.js';

/** tokenField returns the field for a token, and the place for what is wrong with it. */
export function tokenField() {
  return {
    input: el('input', { type: 'password', autocomplete: 'off', required: true, id: 'token' }),
    fault: el('p', { class: 'bad', role: 'alert' }),
  };
}

/**
 * tokenForm returns the form around a field. It keeps a token in the tab, and says so of what can be none.
 * @param {ReturnType<typeof tokenField>} field
 * @param {string} key of the token in the storage of the tab
 * @param {() => void} onToken called when the token is kept
 * @param {...any} parts of the form, with the field among them
 */
export function tokenForm({ input, fault }, key, onToken, ...parts) {
  return el('form', { class: 'ask', 'aria-labelledby': 'token-title', onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    const token = input.value.trim();
    if (!/^[!-~]+$/.test(token)) {
      show(fault, 'This is not a token: it has characters that no header may have, such as spaces, line ends, or letters with accents.');
      return;
    }
    sessionStorage.setItem(key, token);
    onToken();
  } }, ...parts);
}
