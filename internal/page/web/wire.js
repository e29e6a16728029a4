// The wire: everything that passed on this page's session. It keeps each message, and shows them by exchange: what
// was asked, with its answer.
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

/**
 * @typedef {object} Exchange a request with its answer, or a message that has none
 * @property {string} key names it for its answer; "" if it gets none
 * @property {string} method of MCP; of HTTP, or the kind of the event, if it is no message of MCP
 * @property {string} about the tool, the resource or the like
 * @property {boolean} out whether this page began it
 * @property {Entry[]} entries all that belongs to it, in order
 * @property {string} status of HTTP, and the code of the error
 * @property {boolean} isFailed
 * @property {number | undefined} ended when its answer came
 */

const mostEntries = 2000, mostBytes = 32 << 20;

/** Wire keeps the newest entries, as far as their texts have room. */
export class Wire {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    /** @type {WeakMap<Entry, Exchange>} */
    this.exchanges = new WeakMap();
    /** @type {Map<string, Exchange>} */
    this.asked = new Map(); // by their keys
    this.dropped = 0;
    this.held = 0; // bytes
    this.began = performance.now();
    /** @type {(exchange: Exchange) => void} */
    this.onexchange = () => {}; // it is new, or has changed
    /** @type {(exchange: Exchange) => void} */
    this.ongone = () => {};
    this.onchange = () => {}; // all may have changed
  }

  /** begin empties it for another session. */
  begin() {
    this.entries = [];
    this.asked.clear();
    this.dropped = this.held = 0;
    this.began = performance.now();
    this.onchange();
  }

  /**
   * @param {boolean} out
   * @param {string} kind
   * @param {string} [all]
   * @param {string} [note]
   * @param {Entry} [of] the request that it answers
   * @returns {Entry}
   */
  add(out, kind, all = '', note = '', of = undefined) {
    const message = /** @type {any} */ (parsed(all));
    const entry = {
      ms: performance.now() - this.began, out, kind, text: all, size: new TextEncoder().encode(all).length,
      summary: summaryOf(all, message), note,
    };
    this.entries.push(entry);
    this.held += entry.size;
    while (this.entries.length > mostEntries || this.held > mostBytes && this.entries.length > 1) this.drop();
    this.onexchange(this.join(entry, message, of));
    return entry;
  }

  /** drop forgets the oldest entry. */
  drop() {
    const gone = /** @type {Entry} */ (this.entries.shift()), exchange = this.exchanges.get(gone);
    this.held -= gone.size;
    gone.text = ''; // its row may still be there
    this.dropped++;
    if (!exchange || exchange.entries.at(-1) !== gone) return;
    if (this.asked.get(exchange.key) === exchange) this.asked.delete(exchange.key);
    this.ongone(exchange);
  }

  /**
   * join puts an entry into the exchange to which it belongs, and returns that.
   * @param {Entry} entry
   * @param {any} message of the entry
   * @param {Entry} [of] the request that it answers
   * @returns {Exchange}
   */
  join(entry, message, of) {
    const isOne = message !== undefined && !Array.isArray(message), isAsked = isOne && typeof message.method === 'string';
    const isAnswer = isOne && !isAsked && message.id !== undefined;
    let exchange = isAsked ? undefined : of && this.exchanges.get(of);
    if (isAnswer) exchange = this.asked.get(keyOf(!entry.out, message.id)) ?? exchange;
    if (exchange) {
      exchange.entries.push(entry);
      if (!entry.out && /^\d/.test(entry.kind)) exchange.status = entry.kind.slice(0, 3);
      if (isAnswer && message.error) {
        exchange.status += ` error ${clip(message.error.code, 12)}`;
        exchange.isFailed = true;
      }
      exchange.isFailed ||= /^[45]/.test(exchange.status);
      exchange.ended = entry.ms;
    } else {
      exchange = { ...this.named(entry, message), out: entry.out, entries: [entry], status: '', isFailed: false, ended: undefined };
      if (exchange.key) this.asked.set(exchange.key, exchange);
    }
    this.exchanges.set(entry, exchange);
    return exchange;
  }

  /**
   * named says what an entry that begins an exchange is.
   * @param {Entry} entry
   * @param {any} message
   */
  named(entry, message) {
    if (Array.isArray(message)) return { key: '', method: `${message.length} messages`, about: message.map(one => clip(one?.method, 40)).filter(Boolean).join(', ') };
    if (typeof message?.method === 'string') {
      const key = message.id === undefined ? '' : keyOf(entry.out, message.id);
      return { key, method: clip(message.method, 80), about: this.aboutOf(entry, message) };
    }
    if (typeof message?.id === 'string' && message.id.startsWith('auto-initialize-')) return { key: '', method: 'initialize', about: 'the gateway has asked' };
    return { key: '', method: clip(entry.kind, 80), about: entry.summary };
  }

  /**
   * aboutOf says what a message of MCP is about.
   * @param {Entry} entry
   * @param {any} message
   */
  aboutOf(entry, { params }) {
    const of = params?.progressToken ?? params?.requestId;
    if (of !== undefined) { // it belongs to another one
      const other = this.asked.get(keyOf(!entry.out, of)) ?? this.asked.get(keyOf(entry.out, of));
      return clip([other && `${other.method} ${other.about}`, params.message].filter(one => typeof one === 'string').join(': '), 160);
    }
    const about = params?.name ?? params?.uri ?? params?.ref?.name ?? params?.ref?.uri ?? params?.level ?? params?.message ?? '';
    return typeof about === 'string' ? clip(about, 160) : '';
  }

  /**
   * note says something more of an entry.
   * @param {Entry | undefined} entry
   * @param {string} more
   */
  note(entry, more) {
    if (!entry) return;
    entry.note = entry.note ? `${entry.note}; ${more}` : more;
    const exchange = this.exchanges.get(entry);
    if (exchange) this.onexchange(exchange);
  }
}

/**
 * keyOf names a request by its id and by who has sent it.
 * @param {boolean} out
 * @param {unknown} id
 */
function keyOf(out, id) { return `${out ? 'out' : 'in'} ${clip(JSON.stringify(id), 100)}`; }

/**
 * summaryOf says what a message is about.
 * @param {string} all
 * @param {any} message
 */
function summaryOf(all, message) {
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
 * wireView shows a Wire: what goes into the dock, and the controls for its bar.
 * @param {Wire} wire
 * @returns {{ element: HTMLElement, controls: HTMLElement }}
 */
export function wireView(wire) {
  const list = el('ol', { class: 'wire' });
  const told = el('p', { class: 'soft' });
  const filter = el('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter', oninput: () => refill() });
  const which = el('select', { 'aria-label': 'Show', onchange: () => refill() },
    ...['without heartbeats', 'everything', 'messages', 'sent', 'received'].map(name => el('option', { value: name }, name)));
  /** @type {Map<Exchange, Row>} */
  const rows = new Map();

  /** @param {Exchange} exchange */
  const passes = exchange => {
    switch (which.value) {
      case 'messages': if (exchange.entries.every(entry => !entry.text)) return false; break;
      case 'sent': if (!exchange.out) return false; break;
      case 'received': if (exchange.out) return false; break;
      case 'without heartbeats': if (/heartbeat|^comment|^event id/.test(exchange.method)) return false; break;
    }
    const wanted = filter.value.toLowerCase();
    return !wanted || exchange.entries.some(entry => `${exchange.method} ${exchange.about} ${entry.kind} ${entry.summary} ${entry.note} ${entry.text}`.toLowerCase().includes(wanted));
  };
  const tell = () => show(told, wire.dropped > 0 && `The first ${wire.dropped} messages are gone.`);
  const isSeen = () => element.checkVisibility?.() ?? !element.hidden; // while nobody looks, nothing is made
  const refill = () => {
    if (!isSeen()) return;
    rows.clear();
    for (const entry of wire.entries) {
      const exchange = wire.exchanges.get(entry);
      if (exchange && !rows.has(exchange) && passes(exchange)) rows.set(exchange, new Row(exchange));
    }
    show(list, ...[...rows.values()].map(row => row.element));
    tell();
  };
  wire.onexchange = exchange => {
    if (!isSeen()) return;
    const row = rows.get(exchange), isAtEnd = scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 40;
    if (row) row.fill();
    else if (passes(exchange)) {
      const made = new Row(exchange);
      rows.set(exchange, made);
      list.append(made.element);
      if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
    }
    tell();
  };
  wire.ongone = exchange => {
    rows.get(exchange)?.element.remove();
    rows.delete(exchange);
  };
  wire.onchange = refill;
  const download = () => save('wire.json', wire.entries.map((entry, i) => `${i === 0 ? '[' : ','}\n${JSON.stringify(entry)}`).concat(wire.entries.length === 0 ? '[]' : '\n]'), 'application/json');
  const head = el('div', { class: 'line titles', 'aria-hidden': 'true' }, ...['', 'Method', 'About', 'Status', 'Sent', 'Received', 'ms', ''].map(title => el('span', {}, title)));
  const scroller = el('div', { class: 'scroller', tabindex: 0, role: 'region', 'aria-label': 'What passed, an exchange in each row' }, head, list);
  const element = el('div', { class: 'passed', hidden: true }, told, scroller);
  return { element, controls: el('div', { class: 'controls' }, filter, which, button('Download', download, { class: 'small' })) };
}

/** Row shows an exchange: a line, and its messages when it is opened. */
class Row {
  /** @param {Exchange} exchange */
  constructor(exchange) {
    this.exchange = exchange;
    this.line = el('summary', { class: 'line' });
    this.shown = 0; // entries whose messages are there
    this.details = el('details', {}, this.line);
    this.details.addEventListener('toggle', () => this.fill());
    this.element = el('li', {}, this.details);
    this.fill();
  }

  /** fill shows what there is now. */
  fill() {
    const { exchange, line, details } = this, { entries } = exchange;
    const bytes = (/** @type {boolean} */ out) => entries.reduce((sum, entry) => entry.out === out ? sum + entry.size : sum, 0);
    const sent = bytes(true), received = bytes(false), first = entries[0];
    line.classList.toggle('failed', exchange.isFailed);
    show(line, el('span', { class: exchange.out ? 'out' : 'in' }, exchange.out ? '→' : '←', el('span', { class: 'hidden' }, exchange.out ? ' sent ' : ' received ')),
      el('bdi', { class: 'method' }, exchange.method), el('bdi', { class: 'what' }, exchange.about),
      el('span', { class: 'status' }, exchange.status), el('span', { class: 'size' }, sent > 0 && size(sent)), el('span', { class: 'size' }, received > 0 && size(received)),
      el('span', { class: 'ms' }, exchange.ended === undefined ? '' : (exchange.ended - first.ms).toFixed(exchange.ended - first.ms < 10 ? 1 : 0)),
      el('em', { class: 'note' }, [...new Set(entries.map(entry => entry.note).filter(Boolean))].join('; ')));
    if (!details.open) return;
    details.append(...entries.slice(this.shown).map(messageOf));
    this.shown = entries.length;
  }
}

/** @param {Entry} entry */
function messageOf(entry) {
  const value = parsed(entry.text);
  return el('div', { class: 'message' },
    el('p', { class: 'part' }, el('span', { class: entry.out ? 'out' : 'in' }, entry.out ? '→ ' : '← '), el('span', { class: 'kind' }, entry.kind), `, ${entry.ms.toFixed(1)} ms after the first request`, entry.note && `, ${entry.note}`),
    value ? [tree(value, 3), el('details', {}, el('summary', {}, 'As text'), el('pre', {}, text(entry.text)))] : entry.text && el('pre', {}, text(entry.text)));
}
