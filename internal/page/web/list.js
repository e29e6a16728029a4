// A list of which people choose one: it is found by words, and walked with the arrows.
import { el, show } from './dom.js';

/**
 * finder makes the field that finds, and the list below it.
 * @param {string} what can be found, for the field
 * @param {() => void} onfind
 */
export function finder(what, onfind) {
  const list = el('ul', { class: 'list', onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event) });
  const buttons = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll(':scope > li > button')]);
  const search = el('input', { type: 'search', class: 'find', 'aria-label': 'Find', placeholder: `Find ${what}   /`, autocomplete: 'off', oninput: onfind,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Enter' && event.key !== 'ArrowDown' || event.isComposing) return;
      event.preventDefault();
      const [first] = buttons();
      if (event.key === 'Enter') first?.click();
      else first?.focus();
    } });
  /** @param {KeyboardEvent} event */
  const walk = event => {
    const all = buttons(), at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    (to < 0 ? search : all[Math.min(to, all.length - 1)]).focus();
  };
  return { search, list };
}

/**
 * fillList shows rows, and leaves the focus in its place of the list.
 * @param {HTMLElement} list
 * @param {...import('./dom.js').Child} rows
 */
export function fillList(list, ...rows) {
  const buttons = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll(':scope > li > button')]);
  const at = buttons().indexOf(/** @type {HTMLElement} */ (document.activeElement));
  show(list, ...rows);
  if (at >= 0) buttons()[at]?.focus({ preventScroll: true });
}
