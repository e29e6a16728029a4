// A session: requests and their answers, over either transport.
import { Refused, Unreachable, HTTPSSE } from './transport.js';

/** @typedef {import('./transport.js').Message} Message */
/** @typedef {import('./transport.js').StreamableHTTP | import('./transport.js').HTTPSSE} AnyTransport */

export const newest = '2025-11-25';

// What this page can do for a server. It declares neither sampling nor roots.
const capabilities = { elicitation: { form: {}, url: {} } };

const opening = { protocolVersion: newest, capabilities, clientInfo: { name: 'mcp-sse-page', title: 'Page of the gateway', version: '1' } };

/** RPCError is the error that answers a request. */
export class RPCError extends Error {
  /** @param {any} error */
  constructor(error) {
    super(typeof error?.message === 'string' ? error.message : 'an error without a message');
    this.code = error?.code;
    this.data = error?.data;
  }
}

// What the gateway may answer without the server, from memory or by itself.
const fromMemory = new Set(['initialize', 'ping', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']);

/**
 * @typedef {object} Pending
 * @property {string} method
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {(progress: any) => void} onprogress
 * @property {import('./wire.js').Entry | undefined} entry
 * @property {any} params
 * @property {Date} at
 * @property {boolean} isGated whether it was sent before the server had started, so that it waits at the gate
 */

/** @typedef {{ name: string, at: Date }} Asking a call of a tool, for which the server may ask */

/** @typedef {{ onprogress?: (progress: any) => void, signal?: AbortSignal }} RequestOptions */

/**
 * Session is one session with the server. Its state is
 *
 *   connecting, starting   until it is known what the server is
 *   resting                that is known from before: the first call starts the server
 *   ready                  the server has answered
 *   failed                 it does not start; the next call starts it again, unless the session is over
 *   closed
 */
export class Session {
  /**
   * @param {AnyTransport} transport
   * @param {import('./wire.js').Wire} wire
   * @param {boolean} initializes whether it sends an initialize of its own, or waits for what the gateway says
   */
  constructor(transport, wire, initializes) {
    this.transport = transport;
    this.wire = wire;
    this.initializes = initializes;
    this.state = 'connecting';
    this.isOver = false;
    this.isCut = false; // whether the stream has ended, and nobody here wanted that
    this.onnew = () => {}; // another session has taken its place at the gateway, and knows nothing of this one
    /** @type {Error | undefined} */
    this.error = undefined;
    /** @type {any} */
    this.server = undefined; // the result of initialize
    this.opened = this.began = performance.now();
    this.readyAfter = 0;
    this.hasRun = false; // whether the server itself has answered in this session
    /** @type {Map<number, Pending>} */
    this.pending = new Map();
    this.last = 0;
    this.onstate = () => {};
    /** @type {(method: string, params: any) => void} */
    this.onnotification = () => {};
    /** @type {Map<any, AbortController>} */
    this.serving = new Map(); // requests of the server, by their ids
    /** @type {(method: string, params: any, signal: AbortSignal, calls: Asking[]) => Promise<any> | undefined} undefined: not served */
    this.onrequest = () => undefined;
    transport.onmessage = (message, asked) => this.receive(message, asked);
    transport.onclose = why => {
      this.isCut = true;
      this.fail(new Error(why), 'closed');
    };
    if (!(transport instanceof HTTPSSE)) transport.onagain = () => this.again(transport);
    transport.onmemory = () => { if (this.state === 'ready' && !this.hasRun) this.change('resting'); };
    transport.onrefuse = refused => { if (this.state !== 'closed') this.fail(refused); };
  }

  /** @param {string} state */
  change(state) {
    if (this.state === state && state !== 'starting') return;
    this.state = state;
    if (state === 'ready') this.readyAfter ||= performance.now() - this.began;
    this.onstate();
  }

  /** takesCalls reports whether there is somebody to call. */
  get takesCalls() { return !this.isOver && (this.server !== undefined || this.state === 'starting'); }

  /** isLost reports whether the session is over, and another try may find a gateway. */
  get isLost() {
    return this.isOver && (this.isCut || this.error instanceof Unreachable || this.error instanceof Refused && this.error.status === 404 && this.transport.hasSession());
  }

  /**
   * fail ends the session.
   * @param {Error} error
   * @param {string} [state]
   */
  fail(error, state = 'failed') {
    const isNews = !this.isOver; // also where a call has failed before
    this.isOver = true;
    this.error = error;
    for (const one of this.serving.values()) one.abort();
    for (const one of this.pending.values()) one.reject(error);
    this.pending.clear();
    if (isNews && this.state === state) this.onstate();
    else this.change(state);
  }

  /** start opens the session. It fails as the state says. */
  async start() {
    try {
      await this.transport.open();
      this.change('starting');
      if (!this.initializes) { // the gateway does it: what is asked now waits at its gate
        this.early = this.request('tools/list', {}).catch(() => undefined);
        return;
      }
      this.server = await this.request('initialize', opening);
      const isKnown = this.transport.onMemory;
      this.transport.version = this.server.protocolVersion;
      await this.notify('notifications/initialized');
      this.transport.listen();
      this.change(isKnown || this.transport.onMemory ? 'resting' : 'ready');
    } catch (error) {
      if (this.state !== 'closed') this.fail(/** @type {Error} */ (error));
    }
  }

  /**
   * again initializes again, before the session's own stream is opened once more. A gateway that was started
   * again goes on with a session, but does not know what its client can do. One that was not has the same
   * answer as before.
   * @param {import('./transport.js').StreamableHTTP} transport
   */
  async again(transport) {
    transport.isNew = false;
    const server = await this.request('initialize', opening);
    if (!transport.isNew || this.isOver) return;
    this.server = server;
    const isKnown = transport.onMemory;
    transport.version = server.protocolVersion;
    transport.lastOwn = '';
    try {
      await this.notify('notifications/initialized');
    } catch (error) { // the next try would find the session known, and not send it
      this.fail(/** @type {Error} */ (error));
      return;
    }
    this.hasRun = false;
    this.error = undefined;
    this.state = isKnown ? 'resting' : 'ready';
    this.onnew();
    this.onstate();
  }

  /**
   * @param {Message} message
   * @param {import('./wire.js').Entry} [asked] the entry of the request in whose response it came
   */
  receive(message, asked) {
    if (typeof message.method === 'string') {
      if (message.id === undefined) this.notified(message);
      else {
        this.runs(); // who asks is there
        this.asked(message, this.callsOf(asked));
      }
      return;
    }
    if (typeof message.id === 'string' && message.id.startsWith('auto-initialize-')) {
      this.announced(message);
      return;
    }
    const one = this.pending.get(message.id);
    const entry = this.wire.entries.at(-1);
    if (!one) {
      if (entry?.kind === 'event: mcp-response') this.wire.note(entry, 'the same again: the gateway does not know which name this client listens to');
      return;
    }
    this.pending.delete(message.id);
    if (one.isGated && !this.transport.onMemory) this.wire.note(one.entry, 'waited at the gate while the server started');
    const error = message.error && new RPCError(message.error);
    this.learn(one, error);
    if (error) one.reject(error);
    else one.resolve(message.result);
  }

  /**
   * learn takes from an answer how the server is: a call may have started it.
   * @param {Pending} one
   * @param {RPCError | undefined} error
   */
  learn(one, error) {
    if (!this.server || this.isOver) return;
    if (error?.data?.type === 'initialization_error') {
      this.error = error;
      this.change('failed');
    } else if (!fromMemory.has(one.method) && typeof error?.data?.reason !== 'string') { // an error with a reason is one of the gateway
      this.runs();
    }
  }

  /** runs notes that the server itself has said something. */
  runs() {
    if (!this.server || this.isOver) return;
    this.hasRun = true;
    this.error = undefined;
    this.change('ready');
  }

  /**
   * starts notes that a request starts the server.
   * @param {string} method
   */
  starts(method) {
    if (!this.server || this.isOver || fromMemory.has(method) || this.state !== 'resting' && this.state !== 'failed') return;
    this.began = performance.now();
    this.readyAfter = 0;
    this.error = undefined;
    this.change('starting');
  }

  /** gaveUp notes that a request has no answer. If no other one waits, nothing will say whether the server has started. */
  gaveUp() {
    const isAwaited = [...this.pending.values()].some(other => !fromMemory.has(other.method));
    if (this.server && !this.isOver && this.state === 'starting' && !isAwaited) this.change('resting');
  }

  /**
   * announced takes the answer to the initialize of the gateway. An error is not the last word: the
   * server may be slow, or be started again.
   * @param {Message} message
   */
  announced(message) {
    const entry = this.wire.entries.at(-1);
    if (this.server || this.isOver) return;
    if (message.error) {
      this.error = new RPCError(message.error);
      this.change(/still starting/.test(this.error.message) ? 'starting' : 'failed');
      return;
    }
    this.wire.note(entry, 'the gateway has initialized the server itself');
    for (const one of this.pending.values()) {
      if (one.entry && entry) this.wire.note(one.entry, `waited at the gate for ${Math.round(entry.ms - one.entry.ms)} ms`);
    }
    this.server = message.result;
    this.error = undefined;
    this.change('ready');
  }

  /** @param {Message} message */
  notified({ method, params }) {
    if (method === 'notifications/progress') {
      const token = params?.progressToken;
      this.pending.get(token)?.onprogress(params);
      return;
    }
    if (method === 'notifications/cancelled') this.serving.get(params?.requestId)?.abort();
    this.onnotification(method, params ?? {});
  }

  /**
   * callsOf returns the calls of tools for which the server may ask: the one in whose response the question
   * came, or else all that run.
   * @param {import('./wire.js').Entry} [asked]
   * @returns {Asking[]}
   */
  callsOf(asked) {
    const running = [...this.pending.values()].filter(one => one.method === 'tools/call');
    const exact = running.filter(one => asked !== undefined && one.entry === asked);
    return (exact.length > 0 ? exact : running).map(one => ({ name: one.params?.name, at: one.at }));
  }

  /**
   * @param {Message} message
   * @param {Asking[]} calls
   */
  async asked({ id, method, params }, calls) {
    let answer;
    const ending = new AbortController();
    this.serving.set(id, ending);
    try {
      const result = method === 'ping' ? {} : await this.onrequest(method, params ?? {}, ending.signal, calls);
      answer = result === undefined ? { error: { code: -32601, message: 'this page does not serve it' } } : { result };
    } catch (error) {
      answer = { error: { code: -32603, message: String(error) } };
    }
    if (this.serving.get(id) === ending) this.serving.delete(id);
    if (ending.signal.aborted) return; // nobody waits for it
    await this.transport.send({ jsonrpc: '2.0', id, ...answer }).catch(error => {
      if (error instanceof Unreachable) this.fail(error); // the server would wait for it
    });
  }

  /**
   * @param {string} method
   * @param {any} [params]
   */
  notify(method, params) {
    return this.transport.send({ jsonrpc: '2.0', method, ...params && { params } });
  }

  /**
   * request sends a request and returns its result. An aborted signal cancels it.
   * @param {string} method
   * @param {any} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>}
   */
  request(method, params = {}, { onprogress, signal } = {}) {
    const id = ++this.last;
    if (onprogress) params = { ...params, _meta: { ...params._meta, progressToken: id } };
    return new Promise((resolve, reject) => {
      /** @type {Pending} */
      const one = { method, params, at: new Date(), resolve, reject, onprogress: onprogress ?? (() => {}), entry: undefined, isGated: false };
      this.pending.set(id, one);
      this.starts(method);
      one.isGated = this.initializes && this.state === 'starting';
      const sent = this.transport.send({ jsonrpc: '2.0', id, method, params });
      one.entry = this.wire.entries.at(-1);
      const drop = (/** @type {Error} */ error) => {
        if (!this.pending.delete(id)) return false;
        reject(error);
        this.gaveUp();
        return true;
      };
      sent.then(() => {
        if (!(this.transport instanceof HTTPSSE)) drop(new Error('the response ended without the answer'));
      }, drop);
      signal?.addEventListener('abort', () => {
        if (!drop(new DOMException('you have cancelled it', 'AbortError'))) return;
        this.notify('notifications/cancelled', { requestId: id, reason: 'the user has cancelled it' }).catch(() => {});
      });
    });
  }

  /**
   * all returns the members of a list, page by page, until there is no cursor, or one comes again.
   * @param {string} method
   * @param {string} member
   * @returns {Promise<any[]>}
   */
  async all(method, member) {
    /** @type {any[]} */
    const found = [], seen = new Set();
    let cursor;
    for (let pages = 0; pages < mostPages; pages++) {
      const result = await this.request(method, cursor === undefined ? {} : { cursor });
      if (Array.isArray(result?.[member])) found.push(...result[member].filter((/** @type {unknown} */ one) => one && typeof one === 'object'));
      cursor = result?.nextCursor;
      if (typeof cursor !== 'string' || cursor === '' || seen.has(cursor)) break;
      seen.add(cursor);
    }
    return found;
  }

  close() {
    this.transport.close();
    this.fail(new Error('the session is closed'), 'closed');
  }
}

const mostPages = 100;

/**
 * paced returns a function that does something: never twice at a time, with a pause after each, and once
 * more if it was called meanwhile.
 * @param {() => Promise<unknown>} task
 * @param {number} [pause] in milliseconds
 */
export function paced(task, pause = 1000) {
  let isBusy = false, again = false;
  return async () => {
    again = true;
    if (isBusy) return;
    isBusy = true;
    while (again) {
      again = false;
      await task();
      await new Promise(resolve => setTimeout(resolve, pause));
    }
    isBusy = false;
  };
}

/**
 * needsToken reports whether a session failed for want of a token.
 * @param {unknown} error
 * @returns {error is Refused}
 */
export function needsToken(error) { return error instanceof Refused && error.status === 401; }
