// JSON as a tree that folds. What is folded is not made, so a large value costs what is looked at.
import { el, button, clip } from './dom.js';

const mostMembers = 200, mostText = 5000;

/**
 * tree shows a value.
 * @param {unknown} value
 * @param {number} [unfolded] how many levels are open
 * @returns {HTMLElement}
 */
export function tree(value, unfolded = 2) {
  return el('div', { class: 'tree' }, branch(value, unfolded));
}

/**
 * @param {unknown} value
 * @param {number} unfolded
 * @returns {HTMLElement}
 */
function branch(value, unfolded) {
  if (value === null || typeof value !== 'object') return leaf(value);
  const isList = Array.isArray(value);
  const members = Object.entries(value);
  if (members.length === 0) return el('span', {}, isList ? '[]' : '{}');
  const summary = el('summary', {}, isList ? `[${members.length}]` : `{${members.length}}`,
    el('small', {}, ' ', isList ? '' : clip(members.slice(0, 6).map(([name]) => name).join(', '), 80)));
  const list = el('ul');
  const details = el('details', {}, summary, list);
  let shown = 0;
  const more = () => {
    const next = members.slice(shown, shown + mostMembers);
    shown += next.length;
    list.append(...next.map(([name, member]) => el('li', {},
      el('span', { class: 'member' }, isList ? `${name}: ` : `${clip(name, 200)}: `), branch(member, unfolded - 1))));
    if (shown < members.length) {
      const rest = el('li', {}, button(`${members.length - shown} more`, () => { rest.remove(); more(); }, { class: 'small' }));
      list.append(rest);
    }
  };
  details.addEventListener('toggle', () => { if (details.open && shown === 0) more(); });
  if (unfolded > 0 && members.length <= mostMembers) {
    more();
    details.open = true;
  }
  return details;
}

/** @param {unknown} value */
function leaf(value) {
  if (typeof value === 'string') return text(JSON.stringify(value), 'string');
  return el('span', { class: value === null ? 'null' : typeof value }, String(value));
}

/**
 * text shows a text that may be long.
 * @param {string} all
 * @param {string} [kind]
 */
export function text(all, kind) {
  const part = el('span', { class: kind }, clip(all, mostText));
  if (all.length <= mostText) return part;
  const rest = button(`all ${all.length} characters`, () => { part.textContent = all; rest.remove(); }, { class: 'small' });
  return el('span', {}, part, ' ', rest);
}

/**
 * prose shows a text of a server in its lines, the rest of a long one on demand.
 * @param {unknown} all
 * @param {number} [most]
 */
export function prose(all, most = 1000) {
  const whole = typeof all === 'string' ? all : clip(all, most), part = el('bdi', {}, clip(whole, most));
  const shown = el('p', { class: 'text' }, part);
  if (whole.length > most) {
    const rest = button(`all ${whole.length} characters`, () => { part.textContent = whole; rest.remove(); }, { class: 'small' });
    shown.append(' ', rest);
  }
  return shown;
}

/**
 * parsed returns what a text is as JSON, if it is an object or an array.
 * @param {string} all
 * @returns {object | undefined}
 */
export function parsed(all) {
  if (!/^\s*[[{]/.test(all)) return undefined;
  try {
    return JSON.parse(all);
  } catch {
    return undefined;
  }
}
