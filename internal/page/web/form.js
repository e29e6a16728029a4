// A form made from a JSON Schema. What it cannot express is a field of JSON.
import { el, show, button, clip } from './dom.js';
import { settle, choices, isObject, unsafeInteger, mostSteps } from './schema.js';
import { checked } from './check.js';

/** @typedef {import('./schema.js').Schema} Schema */

/**
 * Field is a part of the form.
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {() => any} read returns the value, undefined for none; it throws a Wrong for what is none
 * @property {Control} [control] where people put it in; the members of the form itself have none in common
 * @property {(token: string) => Field | undefined} [inside] returns the field of a member, by its name or place
 */

/**
 * @typedef {object} Place where a field is
 * @property {Schema} root
 * @property {string} name
 * @property {boolean} required
 * @property {boolean} [isItem] of a list: what is there need not say that it is required
 * @property {boolean} filled whether a value was given: then nothing else is filled in
 * @property {number} depth
 * @property {{ fields: number }} room how many fields more the form may have
 * @property {import('./schema.js').Steps} steps how much more may be done for it
 * @property {boolean} [isOpen] whether it was folded, and somebody has opened it
 */

/**
 * Control has a name, takes a value, and shows what is wrong with it.
 * @typedef {object} Control
 * @property {HTMLElement} element all of it
 * @property {HTMLElement} input
 * @property {HTMLElement} fault
 * @property {HTMLElement} name of the member; empty for the arguments as a whole
 */

/** Wrong says that what is in a control is no value. */
export class Wrong extends Error {
  /**
   * @param {string} text
   * @param {Control} control
   */
  constructor(text, control) {
    super(text);
    this.control = control;
  }
}

const deepest = 5, mostFields = 500, mostRows = 100;
const tooDeep = 'This schema is too deep for a form: write JSON.';
let lastID = 0;

/**
 * Form asks for a value of a schema.
 */
export class Form {
  /**
   * @param {unknown} schema
   * @param {any} [value] what it begins with
   */
  constructor(schema, value) {
    this.schema = isObject(schema) ? schema : {};
    /** @type {Control[]} */
    this.marked = [];
    const place = { root: this.schema, name: '', required: true, filled: value !== undefined, depth: 0, ...bounds() };
    const settled = settle(this.schema, this.schema, place.steps);
    this.rest = el('div', { class: 'fault', role: 'alert' });
    this.field = (isObject(settled.properties) || settled.type === 'object' && !hasMore(settled)) && hasRoom(settled, place)
      ? members(settled, place, value) : json(settled, place, value);
    this.element = el('div', { class: 'form' }, this.field.element, this.rest);
  }

  /**
   * expresses reports whether the form shows all of a value.
   * @param {any} value
   */
  expresses(value) {
    try { return keeps(this.read(), value); } catch { return false; }
  }

  /** read returns the value. It throws a Wrong if a field has none. */
  read() { return this.field.read() ?? {}; }

  /**
   * check shows what is wrong, and returns the value, what it does not fulfil, and whether it could be checked.
   * @returns {Promise<{ value: any, faults: import('./schema.js').Fault[], isChecked: boolean }>}
   */
  async check() {
    for (const { input, fault } of this.marked) {
      show(fault);
      input.removeAttribute('aria-invalid');
    }
    this.marked = [];
    show(this.rest);
    let value, found;
    try {
      value = this.read();
      found = await checked(value, this.schema);
      for (const { path, text } of found ?? []) this.mark(this.nearest(path), text, path);
    } catch (error) {
      const { message, control } = /** @type {Wrong} */ (error);
      found = [{ path: '', text: message }];
      this.mark(control, message);
    }
    this.marked[0]?.input.focus();
    return { value, faults: found ?? [], isChecked: found !== undefined };
  }

  /**
   * mark shows what is wrong at a control, or without one at the end of the form.
   * @param {Control | undefined} control
   * @param {string} text
   * @param {string} [path]
   */
  mark(control, text, path) {
    if (!control) {
      this.rest.append(el('p', {}, path && `${clip(path, 200)}: `, clip(text, 300)));
      return;
    }
    control.fault.append(el('p', {}, clip(text, 300)));
    control.input.setAttribute('aria-invalid', 'true');
    this.marked.push(control);
  }

  /**
   * nearest returns the control of a value, or of the innermost one around it that has a field.
   * @param {string} path as a JSON pointer
   */
  nearest(path) {
    let { field } = this;
    for (const token of path.split('/').slice(1)) {
      const member = field.inside?.(token.replaceAll('~1', '/').replaceAll('~0', '~'));
      if (!member) break;
      field = member;
    }
    return field.control;
  }
}

/** bounds are those of what is made at once. */
function bounds() { return { room: { fields: mostFields }, steps: { left: mostSteps } }; }

/**
 * canonical returns a value as JSON, in one order.
 * @param {unknown} value
 * @returns {string}
 */
function canonical(value) {
  return JSON.stringify(value, (_, member) => isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => a < b ? -1 : 1)) : member);
}

/**
 * keeps reports whether all of a value is in what was made of it. What a form asks for may be there, empty,
 * too.
 * @param {any} made
 * @param {any} value
 * @returns {boolean}
 */
export function keeps(made, value) {
  if (!isObject(made) || !isObject(value)) return canonical(made) === canonical(value);
  return Object.entries(value).every(([name, member]) => Object.hasOwn(made, name) && keeps(made[name], member));
}

/** @param {Schema} schema */
function hasMore(schema) {
  return isObject(schema.additionalProperties) || isObject(schema.patternProperties) || schema.additionalProperties === true;
}

/**
 * hasRoom reports whether a form has room for the members of an object, and takes it.
 * @param {Schema} schema
 * @param {Place} place
 */
function hasRoom(schema, place) {
  const wanted = isObject(schema.properties) ? Object.keys(schema.properties).length : 0;
  if (wanted > place.room.fields) return false;
  place.room.fields -= wanted;
  return true;
}

/**
 * fieldOf returns the field of a schema.
 * @param {unknown} of
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function fieldOf(of, place, value) {
  const schema = settle(of, place.root, place.steps);
  if (value === undefined && !place.filled) value = first(schema, place.required);
  const field = fitting(schema, place, value);
  return value === undefined || isExpressed(field, schema, value) ? field : json(schema, place, value);
}

/**
 * later returns a field that somebody has asked for, with bounds of its own.
 * @param {unknown} of
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function later(of, place, value) {
  try {
    return fieldOf(of, { ...place, ...bounds() }, value);
  } catch {
    return json({ description: tooDeep }, place, value);
  }
}

/**
 * isExpressed reports whether a field shows all of a value. What is empty need not be sent.
 * @param {Field} field
 * @param {Schema} schema
 * @param {any} value
 */
function isExpressed(field, schema, value) {
  if (value === '' || Array.isArray(value) && value.length === 0) return true;
  if (isObject(value) && isObject(schema.properties)) return Object.keys(value).every(name => Object.hasOwn(schema.properties, name));
  try {
    const got = field.read();
    return schema.format === 'date-time' ? got !== undefined : canonical(got) === canonical(value);
  } catch {
    return false;
  }
}

/**
 * fitting returns the kind of field that fits a schema.
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function fitting(schema, place, value) {
  const listed = choices(schema);
  if (listed) return select(schema, place, listed, value);
  switch (schema.type) {
    case 'boolean': return boolean(schema, place, value);
    case 'integer': case 'number': return number(schema, place, value);
    case 'string': return string(schema, place, value);
    case 'array': if (place.depth < deepest && isObject(schema.items)) return rows(schema, place, value); break;
    case 'object':
      if (place.depth >= deepest || !isObject(schema.properties) || hasMore(schema)) break;
      if (place.depth > 1 && !place.required && !place.isOpen && value === undefined) return folded(schema, place);
      if (hasRoom(schema, place)) return members(schema, place, value);
  }
  return json(schema, place, value);
}

/**
 * first is what a field begins with: the default, or for what is required the first example.
 * @param {Schema} schema
 * @param {boolean} required
 */
function first(schema, required) {
  if ('default' in schema) return schema.default ?? undefined; // null: as if it were not given
  return required && Array.isArray(schema.examples) ? schema.examples[0] : undefined;
}

/**
 * naming returns the name of a control: the title of its schema, and after it the name of the member.
 * @param {Schema} schema
 * @param {Place} place
 */
function naming(schema, place) {
  const name = el(schema.title ? 'small' : 'bdi', {}, clip(place.name, 200));
  return {
    name, parts: [
      schema.title && [el('bdi', {}, clip(schema.title, 200)), ' '], (place.name || !schema.title) && name,
      place.required && !place.isItem && el('span', { class: 'required' }, ' required'),
    ].flat(),
  };
}

/**
 * labelled puts an input under its name, with its description and a place for what is wrong.
 * @param {HTMLElement} input
 * @param {Schema} schema
 * @param {Place} place
 * @param {string} [hint]
 * @returns {Control}
 */
function labelled(input, schema, place, hint = '') {
  const id = `field-${++lastID}`;
  input.id = id;
  const about = [schema.description && clip(schema.description, 1000), hint].filter(Boolean);
  const fault = el('div', { class: 'fault', id: `${id}-fault`, 'aria-live': 'polite' });
  input.setAttribute('aria-describedby', `${about.length > 0 ? `${id}-about ` : ''}${id}-fault`);
  const { parts, name } = naming(schema, place);
  const element = el('div', { class: 'field' },
    el('label', { for: id }, ...parts), input,
    about.length > 0 && el('small', { id: `${id}-about`, class: 'about' }, about.join(' · ')),
    fault);
  return { element, input, fault, name };
}

/**
 * withControl returns the field of a control.
 * @param {Control} control
 * @param {() => any} read
 * @param {(token: string) => Field | undefined} [inside]
 * @returns {Field}
 */
function withControl(control, read, inside) {
  return { element: control.element, control, read, inside };
}

/**
 * select offers the values of a list.
 * @param {Schema} schema
 * @param {Place} place
 * @param {{ value: any, title: string }[]} listed
 * @param {any} value
 * @returns {Field}
 */
function select(schema, place, listed, value) {
  const chosen = listed.findIndex(one => JSON.stringify(one.value) === JSON.stringify(value));
  const input = el('select', {},
    (!place.required || chosen < 0) && el('option', { value: '' }, place.required ? 'choose' : 'not set'),
    ...listed.map((one, i) => el('option', { value: String(i), selected: i === chosen }, clip(one.title, 200))));
  return withControl(labelled(input, schema, place), () => input.value === '' ? undefined : listed[Number(input.value)].value);
}

/**
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function boolean(schema, place, value) {
  if (!place.required && typeof value !== 'boolean') {
    return select(schema, place, [{ value: true, title: 'true' }, { value: false, title: 'false' }], value);
  }
  const input = el('input', { type: 'checkbox', checked: value === true });
  return withControl(labelled(input, schema, place), () => input.checked);
}

/**
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function number(schema, place, value) {
  const whole = schema.type === 'integer';
  const input = el('input', {
    type: 'number', inputmode: whole ? 'numeric' : 'decimal', min: numeric(schema.minimum), max: numeric(schema.maximum),
    step: whole ? 1 : 'any', value: typeof value === 'number' ? value : '', placeholder: example(schema),
  });
  const bounds = [
    [schema.minimum, 'from'], [schema.exclusiveMinimum, 'above'], [schema.maximum, 'to'], [schema.exclusiveMaximum, 'below'],
  ].filter(([bound]) => typeof bound === 'number').map(([bound, word]) => `${word} ${bound}`).join(' ');
  const control = labelled(input, schema, place, bounds);
  return withControl(control, () => {
    if (input.validity.badInput) throw new Wrong('This is not a number.', control);
    if (input.value === '') return undefined;
    const got = Number(input.value);
    if (!Number.isFinite(got)) throw new Wrong('This number is too large for this page.', control);
    if (Number.isInteger(got) && !Number.isSafeInteger(got) && (whole || /^-?\d+$/.test(input.value))) {
      throw new Wrong('This page cannot send an integer this large: it would be rounded.', control);
    }
    return got;
  });
}

/** @param {unknown} bound */
function numeric(bound) { return typeof bound === 'number' ? bound : undefined; }

/** @param {Schema} schema */
function example(schema) {
  const one = Array.isArray(schema.examples) ? schema.examples[0] : undefined;
  return one === undefined ? undefined : `such as ${clip(one, 60)}`;
}

/** The inputs of formats: the type, and how a value gets into it and out of it. */
/** @type {Record<string, { type: string, into?: (text: string) => string, out?: (text: string) => string }>} */
const formats = {
  date: { type: 'date' },
  time: { type: 'time', out: text => text && `${text.length === 5 ? `${text}:00` : text}Z` },
  'date-time': {
    type: 'datetime-local',
    into: text => { const at = new Date(text); return isNaN(+at) ? '' : new Date(+at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19); },
    out: text => text && new Date(text).toISOString(),
  },
  email: { type: 'email' },
  uri: { type: 'url' },
  password: { type: 'password' },
};

/**
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function string(schema, place, value) {
  const text = typeof value === 'string' ? value : '';
  const name = schema.writeOnly === true ? 'password' : schema.format, format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (format) {
    const input = el('input', { type: format.type, autocomplete: 'off', step: format.type === 'date' ? undefined : 1, value: (format.into ?? (one => one))(text), placeholder: example(schema) });
    const control = labelled(input, schema, place);
    return withControl(control, () => {
      try {
        return (format.out ?? (one => one))(input.value) || undefined;
      } catch { // a year of five digits
        throw new Wrong('This is not a time that can be sent.', control);
      }
    });
  }
  const input = el('textarea', {
    rows: Math.min(12, text.split('\n').length), value: text, placeholder: example(schema), spellcheck: 'false', autocapitalize: 'off',
    onkeydown: (/** @type {KeyboardEvent} */ event) => { // as in a field of one line; a new line has Shift
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      input.form?.requestSubmit();
    },
    oninput: () => { if (empty) empty.hidden = input.value !== ''; },
  });
  // A required text that nobody has typed is a fault, unless somebody wants it to be empty.
  const canBeEmpty = place.required && !(schema.minLength > 0);
  const box = el('input', { type: 'checkbox', checked: value === '' });
  const empty = canBeEmpty && el('label', { class: 'box empty', hidden: text !== '' }, box, ' send empty text');
  const bounds = [
    typeof schema.minLength === 'number' && schema.minLength > 0 && `at least ${schema.minLength} characters`,
    typeof schema.maxLength === 'number' && `at most ${schema.maxLength} characters`,
    typeof schema.pattern === 'string' && `of the form ${clip(schema.pattern, 100)}`,
  ].filter(Boolean).join(', ');
  const control = labelled(input, schema, place, bounds);
  if (empty) control.fault.before(empty);
  return withControl(control, () => {
    if (input.value !== '' || empty && box.checked) return input.value;
    if (place.isItem && canBeEmpty) throw new Wrong('It is required.', control);
    return undefined;
  });
}

/**
 * members has a field for each property.
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function members(schema, place, value) {
  const given = isObject(value) ? value : {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields = new Map(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, fieldOf(of, {
    ...place, isItem: false, isOpen: false, name, required: required.has(name), depth: place.depth + 1,
  }, Object.hasOwn(given, name) ? given[name] : undefined)]));
  const read = () => {
    /** @type {Record<string, any>} */
    const all = {};
    for (const [name, field] of fields) {
      const got = field.read();
      if (got !== undefined) Object.defineProperty(all, name, { value: got, enumerable: true, configurable: true, writable: true });
    }
    return Object.keys(all).length === 0 && !place.required ? undefined : all;
  };
  const inside = (/** @type {string} */ name) => fields.get(name);
  const elements = [...fields.values()].map(({ element }) => element);
  if (place.depth > 0) return withControl(group(schema, place, elements), read, inside);
  return { element: el('div', {}, ...elements, fields.size === 0 && el('p', { class: 'soft' }, 'It takes no arguments.')), read, inside };
}

/**
 * @param {Schema} schema
 * @param {Place} place
 * @param {HTMLElement[]} elements
 * @returns {Control}
 */
function group(schema, place, elements) {
  const fault = el('div', { class: 'fault', 'aria-live': 'polite' });
  const { parts, name } = naming(schema, place);
  const element = el('fieldset', { tabindex: -1 }, el('legend', {}, ...parts),
    schema.description && el('small', { class: 'about' }, clip(schema.description, 1000)), ...elements, fault);
  return { element, input: element, fault, name };
}

/**
 * folded is made when it is opened: an object that may be left out, inside another one. A schema may have
 * itself as a member.
 * @param {Schema} schema
 * @param {Place} place
 * @returns {Field}
 */
function folded(schema, place) {
  /** @type {Field | undefined} */
  let field;
  const control = group(schema, place, [button('Fill in', () => {
    field = later(schema, { ...place, isOpen: true }, undefined);
    show(element, field.element);
    /** @type {HTMLElement | null} */ (element.querySelector('input, select, textarea, button'))?.focus();
  }, { class: 'small', 'aria-label': `Fill in ${clip(place.name, 60)}` })]);
  const element = el('div', {}, control.element);
  return { element, get control() { return field?.control ?? control; }, read: () => field?.read(), inside: token => field?.inside?.(token) };
}

/**
 * rows has a field for each member of a list, or a box to tick for each that there can be.
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function rows(schema, place, value) {
  const given = Array.isArray(value) ? value : [];
  const listed = choices(settle(schema.items, place.root, place.steps));
  if (listed && schema.uniqueItems !== false && listed.length <= 30) return boxes(schema, place, listed, given);
  /** @type {{ field: Field, element: HTMLElement, remove: HTMLElement }[]} */
  let all = [];
  const list = el('div', { class: 'rows' });
  const number = () => all.forEach(({ field, remove }, i) => {
    if (field.control) show(field.control.name, clip(`${place.name} ${i + 1}`, 200));
    remove.setAttribute('aria-label', `Remove ${clip(place.name, 60)} ${i + 1}`);
  });
  const add = (/** @type {any} */ one, filled = place.filled, make = fieldOf) => {
    const field = make(schema.items, { ...place, filled, isOpen: false, required: true, isItem: true, depth: place.depth + 1 }, one);
    const remove = button('Remove', () => {
      all = all.filter(other => other !== row);
      row.element.remove();
      number();
    }, { class: 'small' });
    const row = { field, remove, element: el('div', { class: 'item' }, field.element, remove) };
    all.push(row);
    list.append(row.element);
    number();
  };
  for (const one of given.slice(0, mostRows)) add(one); // more of them are JSON
  const control = group(schema, place, [list, button('Add', () => {
    add(undefined, false, later);
    /** @type {HTMLElement | null} */ (list.lastElementChild?.querySelector('input, select, textarea') ?? null)?.focus();
  }, { class: 'small', 'aria-label': `Add to ${clip(place.name, 60)}` })]);
  const read = () => all.length === 0 && !place.required && value === undefined ? undefined : all.map(({ field }) => field.read() ?? null);
  return withControl(control, read, token => all[Number(token)]?.field);
}

/**
 * @param {Schema} schema
 * @param {Place} place
 * @param {{ value: any, title: string }[]} listed
 * @param {any[]} given
 * @returns {Field}
 */
function boxes(schema, place, listed, given) {
  const chosen = new Set(given.map(one => JSON.stringify(one)));
  const inputs = listed.map(one => el('input', { type: 'checkbox', checked: chosen.has(JSON.stringify(one.value)) }));
  const control = group(schema, place, listed.map((one, i) => el('label', { class: 'box' }, inputs[i], ' ', clip(one.title, 200))));
  return withControl(control, () => {
    const ticked = listed.filter((_, i) => inputs[i].checked).map(one => one.value);
    return ticked.length === 0 && !place.required ? undefined : ticked;
  });
}

/**
 * json takes what no other field can express.
 * @param {Schema} schema
 * @param {Place} place
 * @param {any} value
 * @returns {Field}
 */
function json(schema, place, value) {
  const text = value === undefined ? '' : JSON.stringify(value, null, 2);
  const input = el('textarea', { class: 'json', rows: Math.min(16, Math.max(2, text.split('\n').length)), value: text, spellcheck: 'false', autocapitalize: 'off' });
  const control = labelled(input, place.depth === 0 ? { ...schema, title: 'Arguments', description: '' } : schema, place, 'JSON');
  return withControl(control, () => {
    if (input.value.trim() === '') return undefined;
    const rounded = unsafeInteger(input.value);
    if (rounded !== undefined) throw new Wrong(`This page cannot send the integer ${clip(rounded, 60)}: it would be rounded.`, control);
    try {
      return JSON.parse(input.value);
    } catch (error) {
      throw new Wrong(`This is not valid JSON: ${/** @type {Error} */ (error).message}`, control);
    }
  });
}

/**
 * formOf returns the form of a schema, one of JSON for a schema that is too much for it.
 * @param {unknown} schema
 * @param {any} [value]
 */
export function formOf(schema, value) {
  try { return new Form(schema, value); } catch { return jsonForm(schema, value, tooDeep); }
}

/**
 * jsonForm asks for the same as a text of JSON.
 * @param {unknown} schema
 * @param {any} value
 * @param {string} [why] there is no other form
 */
export function jsonForm(schema, value, why = '') {
  const form = new Form({}, undefined);
  form.schema = isObject(schema) ? schema : {};
  form.field = json({}, { root: {}, name: '', required: true, filled: true, depth: 0, ...bounds() }, value ?? {});
  show(form.element, why && el('p', { class: 'warn' }, why), form.field.element, form.rest);
  return form;
}
