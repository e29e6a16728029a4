// The calls of this tab: each goes on, and keeps its result, whatever the page shows.
import { el, show, button, named, clip, took, count, say } from './dom.js';
import { toolResult, failure, keepers } from './result.js';
import { mark } from './head.js';

/**
 * @typedef {object} About what of a call is kept when the page is loaded again
 * @property {string} tool
 * @property {any} arguments without what is secret
 * @property {number} at
 * @property {number} ms
 * @property {string} outcome running, ok, error, failed or cancelled
 */

const mostCalls = 20;

/** Call is a call of a tool. Its element shows the progress, then the result. */
export class Call {
  /** @param {About} about */
  constructor(about) {
    this.about = about;
    this.element = el('div', {}, el('p', { class: 'soft' }, 'Its result is gone, because the page has been loaded again since.'));
  }

  get isRunning() { return this.about.outcome === 'running'; }

  /**
   * run sends it, and returns when it has ended.
   * @param {import('./session.js').Session} session
   * @param {any} tool
   * @param {any} args
   * @param {(uri: string) => void} read
   * @param {string} note of what the user shall know
   */
  async run(session, tool, args, read, note) {
    const { about } = this, warning = note && el('p', { class: 'warn' }, note);
    const cancelling = new AbortController(), began = performance.now();
    const bar = el('progress', { 'aria-label': 'Progress of the call' }), message = el('span', {}), clock = el('span', { class: 'clock' });
    const tick = setInterval(() => { clock.textContent = took(performance.now() - began); }, 100);
    show(this.element, warning, el('div', { class: 'progress' }, bar, clock, button('Cancel', () => cancelling.abort()), message));
    let shown, kept;
    try {
      const result = await session.request('tools/call', { name: tool.name, arguments: args }, {
        signal: cancelling.signal,
        onprogress: at => {
          if (isNumber(at?.total) && at.total > 0) bar.max = at.total;
          if (isNumber(at?.progress) && bar.hasAttribute('max')) bar.value = Math.max(0, at.progress);
          show(message, named(at?.message ?? (isNumber(at?.progress) ? `${at.progress}${isNumber(at.total) ? ` of ${at.total}` : ''}` : ''), 300));
        },
      });
      about.outcome = result?.isError ? 'error' : 'ok';
      shown = toolResult(result, tool.outputSchema, read);
      kept = result;
    } catch (error) {
      about.outcome = cancelling.signal.aborted ? 'cancelled' : 'failed';
      if (about.outcome === 'failed') shown = failure(error);
    }
    clearInterval(tick);
    about.ms = performance.now() - began;
    show(this.element, el('div', { class: 'heading' }, el('p', {}, mark(about.outcome === 'ok' ? 'ready' : about.outcome === 'cancelled' ? '' : 'failed', about.outcome), ` after ${took(about.ms)}`),
      kept !== undefined && keepers(about.tool, kept)), warning, shown);
    say(`${clip(about.tool, 100)}: ${outcomeOf(about)}`);
  }
}

/** @param {unknown} value @returns {value is number} JSON has numbers that are infinite here */
function isNumber(value) { return Number.isFinite(value); }

/** @param {About} about */
function outcomeOf({ outcome, ms }) { return `${clip(outcome, 20)} after ${took(Number(ms))}`; }

/** Calls are those of this tab, the newest first. */
export class Calls {
  /** @param {(call: Call) => void} choose */
  constructor(choose) {
    this.key = `calls ${location.pathname}`;
    this.choose = choose;
    this.all = this.kept().map(about => new Call(about));
    /** @type {Call | undefined} */
    this.chosen = undefined;
    this.element = el('div', { class: 'past' });
    this.fill();
  }

  /** @returns {About[]} */
  kept() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.key) ?? '[]');
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  }

  /** @param {Call} call */
  add(call) {
    this.all.unshift(call);
    this.fill();
  }

  /** ended keeps the calls that have ended, as far as there is room. */
  ended() {
    const isOld = new Set(this.all.filter(call => !call.isRunning).slice(mostCalls));
    this.all = this.all.filter(call => !isOld.has(call));
    try {
      sessionStorage.setItem(this.key, JSON.stringify(this.all.filter(call => !call.isRunning).map(call => call.about)));
    } catch { /* the arguments are too large to keep */ }
    this.fill();
  }

  /** @param {Call | undefined} call that the page shows */
  show(call) {
    this.chosen = call;
    this.fill();
  }

  fill() {
    const hadFocus = this.element.contains(document.activeElement);
    show(this.element, this.all.length > 0 && el('details', { open: true }, el('summary', {}, `${count(this.all.length, 'call')} of this tab`),
      el('ul', { class: 'list' }, ...this.all.map(call => this.row(call)))));
    if (hadFocus) /** @type {HTMLElement | null} */ (this.element.querySelector('[aria-current], button'))?.focus();
  }

  /** @param {Call} call */
  row(call) {
    const { about } = call, at = new Date(Number(about.at)).toLocaleTimeString();
    return el('li', {}, el('button', { type: 'button', 'aria-current': call === this.chosen ? 'true' : undefined, onclick: () => this.choose(call) },
      el('b', {}, named(about.tool, 100)), ' ', el('small', { class: /error|failed/.test(clip(about.outcome, 20)) ? 'bad' : '' }, call.isRunning ? `running since ${at}` : `${outcomeOf(about)}, ${at}`),
      el('small', { class: 'about' }, clip(about.arguments, 100))));
  }
}
