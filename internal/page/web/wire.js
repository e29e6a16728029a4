// The wire: everything that passed on this page's session, in its order.
import { el, show, button, save, clip, size } from './dom.js';
import { tree, text, parsed } from './json.js';

/**
 * @typedef {object} Entry
 * @property {number} ms since the session began with its first request
 * @property {boolean} out whether this page has sent it
 * @property {string} kind such as POST, 202, event: message
 * @property {string} text the message, "" for none
 * @property {number} size its bytes
 * @property {string} summary what it is about
 * @property {string} note what this page knows of it
 */

const mostEntries = 2000, mostBytes = 32 << 20;

/** Wire keeps the newest entries, as far as their texts have room. */
export class Wire {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    this.dropped = 0;
    this.held = 0; // bytes
    this.began = performance.now();
    /** @type {(entry: Entry) => void} */
    this.onadd = () => {};
    /** @type {(entry: Entry) => void} */
    this.onnote = () => {};
    this.onchange = () => {}; // all may have changed
  }

  /** begin empties it for another session. */
  begin() {
    this.entries = [];
    this.dropped = this.held = 0;
    this.began = performance.now();
    this.onchange();
  }

  /**
   * @param {boolean} out
   * @param {string} kind
   * @param {string} [all]
   * @param {string} [note]
   * @returns {Entry}
   */
  add(out, kind, all = '', note = '') {
    const entry = {
      ms: performance.now() - this.began, out, kind, text: all, size: new TextEncoder().encode(all).length,
      summary: summaryOf(all), note,
    };
    this.entries.push(entry);
    this.held += entry.size;
    while (this.entries.length > mostEntries || this.held > mostBytes && this.entries.length > 1) {
      const gone = /** @type {Entry} */ (this.entries.shift());
      this.held -= gone.size;
      gone.text = ''; // its row may still be there
      this.dropped++;
    }
    this.onadd(entry);
    return entry;
  }

  /**
   * note says something more of an entry.
   * @param {Entry | undefined} entry
   * @param {string} more
   */
  note(entry, more) {
    if (!entry) return;
    entry.note = entry.note ? `${entry.note}; ${more}` : more;
    this.onnote(entry);
  }
}

/**
 * summaryOf says what a message is about.
 * @param {string} all
 */
function summaryOf(all) {
  const message = /** @type {any} */ (parsed(all));
  if (!message) return clip(all, 120);
  if (Array.isArray(message)) return `${message.length} messages`;
  const id = message.id === undefined ? '' : ` ${clip(message.id, 40)}`;
  if (message.method) {
    const about = message.params?.name ?? message.params?.uri ?? '';
    return clip(`${clip(message.method, 80)}${id}${typeof about === 'string' && about ? ` ${about}` : ''}`, 160);
  }
  return message.error ? `error${id}: ${clip(message.error.message, 120)}` : `result${id}`;
}

/**
 * wireView shows a Wire.
 * @param {Wire} wire
 * @returns {HTMLElement}
 */
export function wireView(wire) {
  const list = el('ol', { class: 'wire', tabindex: 0, 'aria-label': 'What passed, in its order' });
  const told = el('p', { class: 'soft' });
  const filter = el('input', { type: 'search', placeholder: 'a method, a name, a text', oninput: () => refill() });
  const which = el('select', { onchange: () => refill() },
    ...['everything', 'messages', 'sent', 'received', 'without heartbeats'].map(name => el('option', { value: name }, name)));

  /** @param {Entry} entry */
  const passes = entry => {
    switch (which.value) {
      case 'messages': if (!entry.text) return false; break;
      case 'sent': if (!entry.out) return false; break;
      case 'received': if (entry.out) return false; break;
      case 'without heartbeats': if (/heartbeat|comment/.test(entry.kind)) return false; break;
    }
    const wanted = filter.value.toLowerCase();
    return !wanted || `${entry.kind} ${entry.summary} ${entry.note} ${entry.text}`.toLowerCase().includes(wanted);
  };
  const tell = () => show(told, wire.dropped > 0 ? `The first ${wire.dropped} are gone. ` : '',
    `${wire.entries.length} entries; the times are milliseconds since the first request of this session.`);
  /** @type {WeakMap<Entry, HTMLElement>} */
  const notes = new WeakMap(); // where the note of an entry stands
  const refill = () => {
    if (section.hidden) return; // nobody looks: it is filled when somebody does
    show(list, ...wire.entries.filter(passes).map(entry => row(entry, notes)));
    tell();
  };
  wire.onadd = entry => {
    if (section.hidden) return;
    if (list.childElementCount >= mostEntries) list.firstElementChild?.remove();
    if (passes(entry)) list.append(row(entry, notes));
    tell();
  };
  wire.onnote = entry => {
    const note = notes.get(entry);
    if (note) note.textContent = entry.note;
  };
  wire.onchange = refill;
  const section = el('section', { 'aria-labelledby': 'wire-title', hidden: true },
    el('h2', { id: 'wire-title' }, 'The wire'),
    el('p', {}, 'Everything that passed between this page and the gateway, as any client would send and get it.'),
    el('div', { class: 'row' },
      el('label', {}, 'Filter', filter), el('label', {}, 'Show', which),
      button('Download', () => save('wire.json', wire.entries.map((entry, i) => `${i === 0 ? '[' : ','}\n${JSON.stringify(entry)}`).concat(wire.entries.length === 0 ? '[]' : '\n]'), 'application/json'))),
    told, list);
  return section;
}

/**
 * @param {Entry} entry
 * @param {WeakMap<Entry, HTMLElement>} notes
 */
function row(entry, notes) {
  const note = el('em', { class: 'note' }, entry.note);
  notes.set(entry, note);
  const head = [
    el('span', { class: 'ms' }, entry.ms.toFixed(1)),
    el('span', { class: entry.out ? 'out' : 'in' }, entry.out ? '→ ' : '← ', el('span', { class: 'hidden' }, entry.out ? 'sent ' : 'received '), entry.kind),
    el('bdi', { class: 'what' }, entry.summary),
    el('span', { class: 'size' }, entry.text ? size(entry.size) : ''),
    note,
  ];
  if (!entry.text) return el('li', {}, el('div', { class: 'line' }, ...head));
  const details = el('details', {}, el('summary', { class: 'line' }, ...head));
  details.addEventListener('toggle', () => {
    if (!details.open || details.childElementCount > 1) return;
    const value = parsed(entry.text);
    details.append(el('div', { class: 'message' }, value ? [tree(value, 3), el('details', {}, el('summary', {}, 'As text'), el('pre', {}, text(entry.text)))] : el('pre', {}, text(entry.text))));
  });
  return el('li', {}, details);
}
