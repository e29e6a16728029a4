// The two transports of MCP over HTTP. Both send messages, give each one that comes to onmessage, and put
// all that passes into the wire. They differ in where answers come: in the response to the POST, or on
// the stream that was opened first.
import { events } from './events.js';

/** @typedef {import('./wire.js').Wire} Wire */
/** @typedef {Record<string, any>} Message */

/**
 * @typedef {object} Options
 * @property {string} url
 * @property {() => string} token "" for none
 * @property {Wire} wire
 * @property {string} version the revision that is asked for
 * @property {(waits: boolean) => void} [onwait] called when a POST has waited long for the head of its response, and when it no longer does
 */

/** Refused is a response with a status that is no success. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} challenge the header WWW-Authenticate
   * @param {any} error the JSON-RPC error in the body, if there is one
   */
  constructor(status, challenge, error) {
    super(error?.message ?? `the gateway answered ${status}`);
    this.status = status;
    this.challenge = challenge;
    this.error = error;
  }
}

/** Unreachable is a gateway that does not answer. */
export class Unreachable extends Error {
  /** @param {string} url */
  constructor(url) { super(`No answer from ${url}: is sse-server running?`); }
}

/** Transport has what both have in common. */
class Transport {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.ending = new AbortController();
    this.version = ''; // the revision that was agreed on
    this.waiting = 0; // POSTs that have waited long
    this.onMemory = false; // whether the last response said that what is known of the server is from memory
    this.onmemory = () => {};
    /** @type {(message: Message, asked?: import('./wire.js').Entry) => void} */
    this.onmessage = () => {};
    /** @type {(why: string) => void} */
    this.onclose = () => {};
    /** @type {(why: Refused | Unreachable) => void} */
    this.onrefuse = () => {}; // the session has ended, or wants a token
  }

  get closed() { return this.ending.signal.aborted; }

  /** hasSession reports whether it has opened a session, which the gateway may not know any more. */
  hasSession() { return this.version !== ''; }

  /**
   * fetch makes a request and returns its response, which is a success.
   * @param {string} url
   * @param {RequestInit} init
   * @param {import('./wire.js').Entry} asked the entry of the request
   * @returns {Promise<Response>}
   */
  async fetch(url, init, asked) {
    const headers = new Headers(init.headers), token = this.options.token();
    if (token) headers.set('Authorization', `Bearer ${token}`);
    const signal = init.signal ?? this.ending.signal;
    let response;
    try {
      response = await fetch(url, { cache: 'no-store', credentials: 'same-origin', ...init, signal, headers });
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Unreachable(this.options.url);
    }
    const kind = response.headers.get('Content-Type')?.replace(/;.*/, '') ?? '';
    if (response.ok) {
      this.onMemory = response.headers.get('X-Connection-State') === 'resting';
      if (this.onMemory) this.onmemory();
      this.options.wire.add(false, `${response.status} ${kind}`.trim(), '', '', asked);
      return response;
    }
    const body = await response.text();
    this.options.wire.add(false, String(response.status), body, '', asked);
    let error;
    try { error = JSON.parse(body).error; } catch { /* it has none */ }
    const refused = new Refused(response.status, response.headers.get('WWW-Authenticate') ?? '', error);
    if (refused.status === 401 || refused.status === 404 && this.hasSession()) this.onrefuse(refused);
    throw refused;
  }

  /**
   * post posts a message, and says when the head of its response is late: over HTTP/1.1 a browser has six
   * connections for a gateway, which the streams of its tabs may hold.
   * @param {string} url
   * @param {string} body
   * @param {Record<string, string>} headers
   * @param {import('./wire.js').Entry} asked
   */
  async post(url, body, headers, asked) {
    const { onwait = () => {} } = this.options;
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      if (++this.waiting === 1) onwait(true);
    }, long);
    try {
      return await this.fetch(url, { method: 'POST', body, headers }, asked);
    } finally {
      clearTimeout(late);
      if (isLate && --this.waiting === 0) onwait(false);
    }
  }

  /**
   * receive takes the text of a message.
   * @param {string} kind
   * @param {string} text
   * @param {import('./wire.js').Entry} [asked] the entry of the request in whose response it came
   */
  receive(kind, text, asked) {
    const entry = this.options.wire.add(false, kind, text);
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      this.options.wire.note(entry, 'not valid JSON');
      return;
    }
    for (const one of Array.isArray(message) ? message : [message]) {
      if (!one || typeof one !== 'object') continue;
      try {
        this.onmessage(one, asked);
      } catch (error) { // the stream goes on
        this.options.wire.note(entry, `this page cannot use it: ${/** @type {Error} */ (error).message}`);
      }
    }
  }

  /**
   * @param {import('./events.js').StreamEvent} event
   * @param {import('./wire.js').Entry} [asked]
   */
  receiveEvent(event, asked) {
    if (event.comment !== undefined) this.options.wire.add(false, `comment: ${event.comment}`);
    else if (event.data === '') this.options.wire.add(false, 'event id', '', 'a place to go on from, if the stream is cut', asked);
    else this.receive(`event: ${event.event}`, event.data, asked);
  }
}

/** How often, and after how many milliseconds, a stream that was cut is taken up again. */
const resumes = 5, pause = 1000;

/** After how many milliseconds a response is late. */
const long = 3000;

/**
 * visible returns when the page can be seen, or the signal ends the wait.
 * @param {AbortSignal} [signal]
 */
export async function visible(signal) {
  while (isUnseen() && !signal?.aborted) {
    await new Promise(resolve => {
      for (const change of ['visibilitychange', 'prerenderingchange']) document.addEventListener(change, resolve, { once: true });
      signal?.addEventListener('abort', resolve, { once: true });
    });
  }
}

/** isUnseen reports whether the page is in the background, or made before anybody opens it. */
function isUnseen() { return globalThis.document?.hidden || /** @type {any} */ (globalThis.document)?.prerendering; }

/** StreamableHTTP is the transport of MCP from 2025-03-26 on. */
export class StreamableHTTP extends Transport {
  constructor(/** @type {Options} */ options) {
    super(options);
    this.title = 'Streamable HTTP';
    this.session = '';
    this.isNew = false; // whether a response has opened the session since somebody looked
    /** @type {() => Promise<void>} */
    this.onagain = async () => {}; // called before the session's own stream is opened once more
    this.lastOwn = ''; // the id of the last event on the session's own stream
  }

  /** open makes nothing: the first POST opens the session. */
  async open() {}

  /**
   * headers are those of a request.
   * @param {Record<string, string>} more
   */
  headers(more) {
    const all = { ...more };
    if (this.session) all['Mcp-Session-Id'] = this.session;
    if (this.version) all['MCP-Protocol-Version'] = this.version;
    return all;
  }

  /**
   * send posts a message. It returns when the response has ended.
   * @param {Message} message
   * @returns {Promise<void>}
   */
  async send(message) {
    const body = JSON.stringify(message);
    const asked = this.options.wire.add(true, 'POST', body);
    const response = await this.post(this.options.url, body, this.headers({ 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }), asked);
    const opened = response.headers.get('Mcp-Session-Id');
    if (opened) {
      this.session = opened;
      this.isNew = true;
    }
    if (response.status === 202 || !response.body) return;
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
      const text = await response.text();
      if (text) this.receive('JSON', text, asked);
      return;
    }
    await this.follow(response, this.ending.signal, asked);
  }

  /**
   * follow reads a stream to its end, and takes it up again where it was cut.
   * @param {Response} response
   * @param {AbortSignal} signal
   * @param {import('./wire.js').Entry} [asked] the entry of the request that the stream answers; none for the session's own
   */
  async follow(response, signal, asked) {
    let last = '';
    for (let left = resumes; ; left--) {
      try {
        for await (const event of events(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
          last = event.id || last;
          if (signal !== this.ending.signal) this.lastOwn = last;
          this.receiveEvent(event, asked);
        }
        return;
      } catch (error) {
        if (signal !== this.ending.signal || signal.aborted || !last || left === 0) throw error; // listen takes up the session's own
      }
      await new Promise(resolve => setTimeout(resolve, pause));
      const again = this.options.wire.add(true, 'GET', '', `the stream was cut: again from event ${last}`);
      response = await this.fetch(this.options.url, { headers: this.headers({ Accept: 'text/event-stream', 'Last-Event-ID': last }), signal }, again);
      if (response.status === 204 || !response.body) return;
    }
  }

  /**
   * listen opens the session's own stream, and keeps it open while the page can be seen: each tab has but
   * a share of the browser's connections.
   */
  async listen() {
    let fault;
    for (let failed = 0, isFirst = true; !this.closed && failed < resumes; isFirst = false) {
      await visible(this.ending.signal);
      const hiding = new AbortController(), hide = () => { if (document.hidden) hiding.abort(); };
      const signal = AbortSignal.any([this.ending.signal, hiding.signal]);
      globalThis.document?.addEventListener('visibilitychange', hide);
      try {
        if (!isFirst) await this.onagain();
        const asked = this.options.wire.add(true, 'GET', '', 'the session\'s own stream');
        const since = this.lastOwn ? { 'Last-Event-ID': this.lastOwn } : undefined;
        const response = await this.fetch(this.options.url, { headers: this.headers({ Accept: 'text/event-stream', ...since }), signal }, asked);
        failed = 0;
        await this.follow(response, signal);
      } catch (error) {
        if (this.closed) return;
        if (hiding.signal.aborted) {
          this.options.wire.add(true, 'end of GET', '', 'nobody sees the page: its stream is for others');
          continue;
        }
        if (error instanceof Refused && error.status === 405) return; // the server has no such stream
        if (error instanceof Refused && (error.status === 401 || error.status === 404)) return; // the session is over
        fault = error;
        failed++;
      } finally {
        globalThis.document?.removeEventListener('visibilitychange', hide);
      }
      await new Promise(resolve => setTimeout(resolve, pause));
    }
    if (this.closed) return;
    if (fault instanceof Unreachable) this.onrefuse(fault);
    else this.onclose('the stream of the session has ended');
  }

  close() {
    if (this.closed) return;
    this.ending.abort();
    if (!this.session) return;
    const headers = new Headers(this.headers({})), token = this.options.token();
    if (token) headers.set('Authorization', `Bearer ${token}`);
    this.options.wire.add(true, 'DELETE');
    fetch(this.options.url, { method: 'DELETE', headers, keepalive: true }).catch(() => {});
  }
}

/** HTTPSSE is the transport of MCP 2024-11-05. */
export class HTTPSSE extends Transport {
  constructor(/** @type {Options} */ options) {
    super(options);
    this.title = 'HTTP+SSE';
    this.endpoint = '';
  }

  /** open opens the stream. It returns when the stream has named the path for messages. */
  open() {
    return new Promise((resolve, reject) => {
      const ended = (/** @type {Error} */ error) => {
        if (this.endpoint) this.end(error instanceof TypeError ? 'the stream was cut' : error.message);
        else reject(error);
      };
      this.read(() => resolve(undefined)).then(() => ended(new Error('the stream has ended')), ended);
    });
  }

  hasSession() { return this.endpoint !== ''; }

  /** @param {string} why */
  end(why) {
    if (this.closed) return;
    this.ending.abort();
    this.onclose(why);
  }

  /** @param {() => void} opened */
  async read(opened) {
    const asked = this.options.wire.add(true, 'GET');
    const response = await this.fetch(this.options.url, { headers: { Accept: 'text/event-stream' } }, asked);
    for await (const event of events(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
      if (event.event !== 'endpoint') {
        this.receiveEvent(event);
        continue;
      }
      this.options.wire.add(false, 'event: endpoint', event.data);
      const at = new URL(event.data, this.options.url);
      if (at.origin !== new URL(this.options.url).origin) throw new Error('the endpoint is on another origin');
      this.endpoint = at.href;
      opened();
    }
  }

  /**
   * send posts a message. Its answer comes on the stream.
   * @param {Message} message
   */
  async send(message) {
    const body = JSON.stringify(message);
    const asked = this.options.wire.add(true, 'POST', body);
    await this.post(this.endpoint, body, { 'Content-Type': 'application/json' }, asked);
  }

  /** listen does nothing: there is one stream for all. */
  async listen() {}

  close() { this.ending.abort(); }
}
