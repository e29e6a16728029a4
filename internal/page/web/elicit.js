// The server asks: an elicitation is answered or declined on the page.
import { el, show, button, link, named, clip, say } from './dom.js';
import { prose } from './json.js';
import { formOf } from './form.js';

const mostCards = 5;

/**
 * elicit asks the user, and returns what the server gets.
 * @param {Element} place
 * @param {any} params
 * @param {AbortSignal} signal ends the question
 * @param {import('./session.js').Asking[]} calls for which the server may ask
 * @returns {Promise<any>}
 */
export function elicit(place, params, signal, calls) {
  if (place.childElementCount >= mostCards) return Promise.resolve({ action: 'cancel' });
  return new Promise(resolve => {
    const isURL = params.mode === 'url';
    const form = isURL ? undefined : formOf(params.requestedSchema);
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const done = (/** @type {any} */ result) => {
      const hadFocus = card.contains(document.activeElement);
      card.remove();
      if (hadFocus) before?.focus();
      resolve(result);
    };
    const fault = el('p', { class: 'bad', 'aria-live': 'polite' });
    const accept = async () => {
      if (!form) return done({ action: 'accept' });
      const { value, faults } = await form.check();
      if (faults.length === 0) return done({ action: 'accept', content: value ?? {} });
      show(fault, 'Not sent: what is wrong stands under the fields.');
    };
    const card = el('form', { class: 'ask', role: 'alertdialog', 'aria-labelledby': 'ask-title', tabindex: -1, novalidate: true,
      onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); accept(); } },
    el('h2', { id: 'ask-title' }, 'The server asks'), el('p', { class: 'soft' }, ...forWhat(calls)), prose(params.message),
    isURL && el('p', {}, 'It wants you to open ', link(params.url), '. Do so only if you know this address.'),
    form?.element, fault,
    el('div', { class: 'row' }, el('button', { type: 'submit', class: 'main' }, isURL ? 'Accept' : 'Answer'),
      button('Decline', () => done({ action: 'decline' })), button('Cancel', () => done({ action: 'cancel' }))));
    signal.addEventListener('abort', () => done({ action: 'cancel' }));
    place.append(card);
    say(`The server asks: ${clip(params.message, 200)}`);
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: 'start' }); // one that is taller than the screen shows who asks what
  });
}

/**
 * forWhat says which tool and which call wants to know.
 * @param {import('./session.js').Asking[]} calls
 */
function forWhat(calls) {
  if (calls.length === 0) return ['No call of this page runs.'];
  const each = calls.slice(0, 5).flatMap(({ name, at }, i) => [i > 0 && ', or ', el('b', {}, named(name, 100)), `, called at ${at.toLocaleTimeString()}`]);
  return ['For ', ...each, calls.length > 5 && ', or another call that runs'];
}
