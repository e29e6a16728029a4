// How everything gets onto the page. Text from a server becomes text nodes and values of attributes,
// never markup, and a URL only gets into an attribute if its scheme is one of these.

export const schemes = /^(#|https?:\/\/|blob:|data:(image|audio)\/|cursor:\/\/|trae:\/\/|vscode:)/;

/** @typedef {Node | string | number | null | undefined | false} Child */

// Properties that are not the attribute of the same name.
const properties = new Set(['value', 'checked', 'disabled', 'open', 'hidden', 'indeterminate', 'selected', 'required']);

/**
 * el makes an element. A property whose name begins with on is a listener.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false && !properties.has(name)) continue;
    if ((name === 'href' || name === 'src') && !schemes.test(value)) throw new Error(`the URL ${clip(value, 80)} is not for a page`);
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (properties.has(name)) /** @type {any} */ (made)[name] = value;
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...nodes(children));
  return made;
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  /** @type {(Node | string)[]} */
  const all = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    all.push(child instanceof Node ? child : String(child));
  }
  return all;
}

/**
 * show replaces what is in an element.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function show(parent, ...children) {
  parent.replaceChildren(...nodes(children));
}

/**
 * plain is the text of data of a server, which may be anything: String would call what it brings.
 * @param {unknown} data
 */
export function plain(data) {
  if (typeof data === 'string') return data;
  try { return JSON.stringify(data) ?? ''; } catch { return ''; } // it is too deep
}

/**
 * rowsOf makes a row of each member of a list. One that breaks its row does not take the others along.
 * @template One
 * @param {readonly One[]} all
 * @param {(one: One) => HTMLLIElement} row
 */
export function rowsOf(all, row) {
  return all.map(one => {
    try {
      return row(one);
    } catch (error) {
      return el('li', { class: 'bad' }, 'This page cannot show one of them: ', clip(/** @type {Error} */ (error).message, 200));
    }
  });
}

/**
 * clip shortens a text of a server, which may be of any length.
 * @param {unknown} text
 * @param {number} most
 */
export function clip(text, most) {
  const all = text === undefined ? '' : plain(text);
  return all.length > most ? `${all.slice(0, most)}…` : all;
}

/**
 * named is a text of a server inside a sentence: its direction of writing does not spread.
 * @param {unknown} text
 * @param {number} [most]
 */
export function named(text, most = 200) {
  return el('bdi', {}, clip(text, most));
}

/**
 * link is a link to a URL that a server names. What is no http or https is text.
 * @param {unknown} url
 * @param {string} [text]
 * @returns {HTMLElement}
 */
export function link(url, text) {
  let at;
  try { at = new URL(String(url)); } catch { /* it is text */ }
  const label = text || clip(url, 500);
  if (at?.protocol !== 'http:' && at?.protocol !== 'https:') return named(label, 500);
  return el('a', { href: at.href, target: '_blank', rel: 'noopener noreferrer' }, named(label, 500));
}

/**
 * button makes one that does something.
 * @param {string} label
 * @param {(event: Event) => void} onclick
 * @param {Record<string, any>} [props]
 */
export function button(label, onclick, props = {}) {
  return el('button', { type: 'button', onclick, ...props }, label);
}

/**
 * recall returns what this browser keeps for the pages of all servers at this address; '' for nothing.
 * @param {string} name
 */
export function recall(name) {
  try { return localStorage.getItem(`page ${name}`) ?? ''; } catch { return ''; } // it may be forbidden
}

/**
 * remember keeps a choice that people make, for recall.
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  try { localStorage.setItem(`page ${name}`, value); } catch { /* it is forbidden, or there is no room */ }
}

/** @param {string} text */
export function say(text) {
  const news = document.getElementById('news');
  if (news) news.textContent = text;
}

/**
 * copier is a button that copies a text.
 * @param {string} label
 * @param {() => string} text
 * @param {string} [name] of the button, for those who cannot see where it is
 */
export function copier(label, text, name) {
  const made = button(label, async () => {
    const copied = await copy(text());
    made.textContent = copied ? 'Copied' : 'Not copied: select it';
    say(copied ? 'Copied' : 'Not copied');
    setTimeout(() => { made.textContent = label; }, 1500);
  }, { class: 'small', 'aria-label': name });
  return made;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // a page over plain HTTP has no clipboard
    const area = el('textarea', { value: text, class: 'hidden' });
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

/**
 * save lets the user keep a text, or bytes, as a file.
 * @param {string} name
 * @param {BlobPart[]} parts of it: a text may be too large for one
 * @param {string} type
 */
export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** @param {number} ms */
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/** @param {number} n */
export function size(n) {
  if (n < 1024) return `${n} B`;
  return n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}

/** @param {number} n @param {string} one */
export function count(n, one) { return `${n} ${one}${n === 1 ? '' : 's'}`; }
