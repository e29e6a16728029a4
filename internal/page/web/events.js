// A stream of events (HTML, 9.2) of a response, which fetch does not read: with EventSource there would
// be no Authorization header, and nothing to see of comments.

/**
 * @typedef {object} StreamEvent
 * @property {string} event its name
 * @property {string} data
 * @property {string} id of the last event that had one
 * @property {string} [comment] of an event that is a comment
 * @property {string} [retry]
 */

/**
 * lines reads a body and returns its lines, without their ends: CR, LF, or both.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<string>}
 */
async function* lines(body) {
  const reader = body.getReader(), decoder = new TextDecoder();
  /** @type {string[]} */
  let begun = []; // of a line, without an end so far
  let skipLF = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let text = decoder.decode(value, { stream: true });
      if (text === '') continue;
      if (skipLF && text.startsWith('\n')) text = text.slice(1);
      skipLF = text.endsWith('\r');
      const parts = text.split(/\r\n|\r|\n/);
      const last = /** @type {string} */ (parts.pop());
      for (const part of parts) {
        yield begun.join('') + part;
        begun = [];
      }
      if (last !== '') begun.push(last);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * events reads a stream of events and returns those that have data, and the comments.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<StreamEvent>}
 */
export async function* events(body) {
  let event = '', id = '', retry = '';
  /** @type {string[]} */
  let data = [];
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield { event: event || 'message', data: data.join('\n'), id, retry };
      event = retry = '';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === '') yield { event: '', data: '', id, comment: value };
    else if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
    else if (name === 'id' && !value.includes('\0')) id = value;
    else if (name === 'retry') retry = value;
  }
}
