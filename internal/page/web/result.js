// What a server answers, by its kind.
import { el, show, link, named, clip, plain, size, button, copier, save } from './dom.js';
import { tree, text, parsed } from './json.js';
import { checked } from './check.js';
import { RPCError } from './session.js';

// What a browser shows without running anything in it. SVG is not among them.
const images = /^image\/(png|jpeg|gif|webp|avif|bmp)$/i, sounds = /^audio\/(mpeg|mp3|wav|x-wav|wave|ogg|webm|mp4|aac|flac)$/i;
const texts = /^(text\/[\w.+-]+|application\/([\w.-]+\+)?(json|xml|yaml))(;|$)/i;

/**
 * toolResult shows the result of a call.
 * @param {any} result
 * @param {any} outputSchema
 * @param {(uri: string) => void} read
 * @returns {HTMLElement}
 */
export function toolResult(result, outputSchema, read) {
  const blocks = Array.isArray(result?.content) ? result.content : [];
  const structured = result?.structuredContent;
  return el('div', { class: result?.isError ? 'result failed' : 'result' },
    result?.isError && el('p', { class: 'bad' }, 'The tool reports an error:'),
    ...blocks.map((/** @type {any} */ block) => isSame(block, structured) ? undefined : contentBlock(block, read)),
    blocks.length === 0 && structured === undefined && el('p', { class: 'soft' }, 'The result is empty.'),
    structured !== undefined && el('section', { class: 'structured' },
      el('h4', {}, blocks.some((/** @type {any} */ block) => isSame(block, structured)) ? 'Structured content, and the same as text' : 'Structured content'), tree(structured, 3), outputSchema && fulfils(structured, outputSchema)));
}

/**
 * keepers are the buttons that copy a result and save it.
 * @param {unknown} name of the file
 * @param {any} result
 */
export function keepers(name, result) {
  return el('div', { class: 'copies' }, copier('Copy', () => textOfResult(result), 'Copy the result'),
    button('Download', () => save(`${fileOf(name)}.json`, [JSON.stringify(result, null, 2)], 'application/json'), { class: 'small', 'aria-label': 'Download the result' }));
}

/**
 * textOfResult returns a result as a text: its own, if it is nothing else.
 * @param {any} result
 * @returns {string}
 */
export function textOfResult(result) {
  const blocks = Array.isArray(result?.content) ? result.content : Array.isArray(result?.contents) ? result.contents : [];
  const isText = blocks.length > 0 && blocks.every((/** @type {any} */ block) => typeof block?.text === 'string');
  return isText ? blocks.map((/** @type {any} */ block) => block.text).join('\n') : JSON.stringify(result, null, 2);
}

/**
 * isSame reports whether a block of text is the structured content again, for clients that take no other.
 * @param {any} block
 * @param {any} structured
 */
function isSame(block, structured) {
  if (structured === undefined || block?.type !== 'text') return false;
  const value = parsed(plain(block.text ?? ''));
  return value !== undefined && JSON.stringify(value) === JSON.stringify(structured);
}

/**
 * @param {any} value
 * @param {any} schema
 */
function fulfils(value, schema) {
  const said = el('div');
  checked(value, schema).then(found => show(said,
    !found ? el('p', { class: 'warn' }, 'This page cannot find out whether it matches the output schema.')
      : found.length === 0 ? el('p', { class: 'good' }, 'Matches the output schema')
        : el('div', { class: 'bad' }, 'Does not match the output schema:',
          el('ul', {}, ...found.slice(0, 20).map(one => el('li', {}, clip(one.path, 200), ' ', clip(one.text, 300)))))));
  return el('div', {}, said,
    el('details', {}, el('summary', {}, 'Output schema'), tree(schema, 2)));
}

/**
 * contentBlock shows one block of content.
 * @param {any} block
 * @param {(uri: string) => void} read
 * @returns {HTMLElement}
 */
export function contentBlock(block, read) {
  switch (block?.type) {
    case 'text': return textBlock(plain(block.text ?? ''));
    case 'image': return media(block.data, block.mimeType);
    case 'audio': return media(block.data, block.mimeType);
    case 'resource': return contents(block.resource);
    case 'resource_link': return el('div', { class: 'block' }, el('p', {}, el('b', {}, named(block.title || block.name || block.uri)), ' ', link(block.uri)),
      block.description && el('p', {}, named(block.description, 1000)),
      button('Read it', () => read(plain(block.uri)), { class: 'small' }));
  }
  return el('div', { class: 'block' }, el('p', { class: 'soft' }, 'A block of a kind that this page does not know:'), tree(block, 3));
}

/** @param {string} all */
function textBlock(all) {
  if (all === '') return el('p', { class: 'block soft' }, '(empty text)');
  const value = parsed(all);
  if (!value) return el('pre', { class: 'block', dir: 'auto', tabindex: 0 }, text(all));
  const plain = el('details', {}, el('summary', {}, 'As text'), el('pre', {}, text(all)));
  return el('div', { class: 'block' }, tree(value, 3), plain);
}

/**
 * base64Of returns Base64 without the space in it, undefined for what is none.
 * @param {string} data
 */
function base64Of(data) {
  const all = data.replace(/\s/g, '');
  return /^[A-Za-z0-9+/]*={0,2}$/.test(all) && all.replace(/=+$/, '').length % 4 !== 1 ? all : undefined;
}

/**
 * media shows an image or a text, plays a sound, or lets the user save what is none.
 * @param {unknown} data in Base64
 * @param {unknown} kind
 * @param {unknown} [uri] of what it is the contents
 * @returns {HTMLElement}
 */
export function media(data, kind, uri) {
  const bytes = typeof data === 'string' ? base64Of(data) : undefined;
  const what = clip(kind, 60), about = bytes === undefined ? '' : `, ${size(Math.floor(bytes.length * 3 / 4))}`;
  if (bytes !== undefined && typeof kind === 'string' && images.test(kind)) {
    return el('figure', { class: 'block' }, el('img', { src: `data:${kind.toLowerCase()};base64,${bytes}`, alt: `An image of the server, ${what}` }),
      el('figcaption', {}, what, about));
  }
  if (bytes !== undefined && typeof kind === 'string' && sounds.test(kind)) {
    return el('figure', { class: 'block' }, el('audio', { src: `data:${kind.toLowerCase()};base64,${bytes}`, controls: true }),
      el('figcaption', {}, what, about));
  }
  if (bytes === undefined) return el('p', { class: 'block' }, 'Data that is not Base64: ', named(what || 'of no type'));
  const written = typeof kind === 'string' && texts.test(kind) ? textOf(bytes) : undefined;
  if (written !== undefined) return textBlock(written);
  return el('p', { class: 'block' }, 'Data that this page does not show: ', named(what || 'of no type'), about, ' ',
    button('Save', () => save(fileOf(uri), [bytesOf(bytes)], 'application/octet-stream'), { class: 'small' }));
}

/** @param {string} base64 */
function bytesOf(base64) { return Uint8Array.from(atob(base64.replace(/=+$/, '')), byte => byte.charCodeAt(0)); }

/** @param {string} base64 @returns {string | undefined} undefined if it is no UTF-8 */
function textOf(base64) {
  try { return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(base64)); } catch { return undefined; }
}

/**
 * fileOf returns a name for a file of what a URI names.
 * @param {unknown} uri
 */
function fileOf(uri) { return clip(uri, 1000).split('/').pop()?.replace(/[^\w.-]+/g, '_').replace(/^\.+/, '').slice(-100) || 'data'; }

/**
 * contents shows the contents of a resource.
 * @param {any} resource
 * @returns {HTMLElement}
 */
export function contents(resource) {
  const shown = typeof resource?.text === 'string' ? textBlock(resource.text)
    : typeof resource?.blob === 'string' ? media(resource.blob, resource.mimeType, resource.uri)
      : el('p', { class: 'soft' }, 'It has no contents.');
  return el('div', { class: 'block' }, el('p', {}, link(resource?.uri), ' ', el('small', {}, clip(resource?.mimeType, 100))), shown);
}

const urlFirst = -32042; // URLElicitationRequiredError of MCP

/**
 * failure shows an error.
 * @param {any} error
 * @returns {HTMLElement}
 */
export function failure(error) {
  return el('div', { class: 'result failed' },
    el('p', { class: 'bad' }, named(error?.message ?? error, 2000), error instanceof RPCError && error.code !== undefined && el('small', {}, ' ', clip(error.code, 20))),
    error?.code === urlFirst && Array.isArray(error.data?.elicitations) && error.data.elicitations.filter((/** @type {any} */ one) => typeof one?.url === 'string').slice(0, 10).map((/** @type {any} */ one) =>
      el('p', {}, 'It wants you to open ', link(one.url), ' first, if you know this address, and to call again. ', named(one.message, 1000))),
    error?.data !== undefined && tree(error.data, 2));
}
