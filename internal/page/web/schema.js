// What a form needs to know of a JSON Schema, and what a value does not fulfil.
import { plain } from './dom.js';
import { Validator } from './jsonschema.js';

/** @typedef {Record<string, any>} Schema */

/**
 * Steps are how many members of schemas may still be looked at. Those of a server have no end if they
 * multiply.
 * @typedef {{ left: number }} Steps
 */

export const mostSteps = 100000;

/** TooDeep is thrown when the steps are used up. */
export class TooDeep extends Error {}

/**
 * spend takes steps, and throws a TooDeep if there are no more.
 * @param {Steps} steps
 * @param {number} n
 */
export function spend(steps, n) {
  steps.left -= n;
  if (steps.left < 0) throw new TooDeep('the schema is too deep');
}

/** @param {Schema} schema */
function sizeOf(schema) {
  return 1 + Object.keys(schema).length + Object.keys(schema.properties ?? {}).length + (Array.isArray(schema.required) ? schema.required.length : 0);
}

/**
 * settle returns a schema without the references and choices that a form can do without: $ref within the
 * document, allOf, a choice between something and null, and a list of types with null.
 * @param {unknown} schema
 * @param {Schema} root
 * @param {Steps} [steps]
 * @param {string[]} [followed] the references that have led here: one that leads to itself says nothing
 * @returns {Schema}
 */
export function settle(schema, root, steps = { left: mostSteps }, followed = []) {
  if (!isObject(schema)) return {};
  spend(steps, sizeOf(schema) + followed.length);
  if (typeof schema.$ref === 'string') {
    const { $ref, ...rest } = schema;
    spend(steps, $ref.length / 10);
    if (followed.includes($ref)) return rest;
    const target = at(root, $ref);
    return target ? settle({ ...target, ...rest }, root, steps, [...followed, $ref]) : schema;
  }
  if (Array.isArray(schema.allOf)) {
    const { allOf, ...rest } = schema;
    return allOf.reduce((all, one) => {
      const part = settle(one, root, steps, followed);
      spend(steps, sizeOf(all) + sizeOf(part));
      return {
        ...part, ...all,
        ...all.properties || part.properties ? { properties: { ...part.properties, ...all.properties } } : {},
        ...all.required || part.required ? { required: [...all.required ?? [], ...part.required ?? []] } : {},
      };
    }, rest);
  }
  for (const word of ['anyOf', 'oneOf']) {
    const choice = schema[word];
    if (!Array.isArray(choice)) continue;
    spend(steps, choice.length);
    const others = choice.filter(one => !(isObject(one) && one.type === 'null'));
    if (others.length !== 1) continue;
    const { [word]: _, ...rest } = schema;
    return settle({ ...settle(others[0], root, steps, followed), ...rest }, root, steps, followed);
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter(type => type !== 'null');
    if (types.length === 1) return { ...schema, type: types[0] };
  }
  return schema;
}

/**
 * unsafeInteger returns an integer of a text of JSON that JSON.parse rounds.
 * @param {string} text
 */
export function unsafeInteger(text) {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/gs, '""').match(/(?<![\d.eE+-])-?\d+(?![\d.eE])/g);
  return numbers?.find(digits => !Number.isSafeInteger(Number(digits)));
}

/**
 * at returns what a reference within a document refers to.
 * @param {Schema} root
 * @param {string} ref
 * @returns {Schema | undefined}
 */
export function at(root, ref) {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  /** @type {any} */
  let found = root;
  for (const part of ref.slice(2).split('/')) {
    let name;
    try { name = decodeURIComponent(part); } catch { return undefined; }
    name = name.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isObject(found) && !Array.isArray(found) || !Object.hasOwn(found, name)) return undefined;
    found = /** @type {any} */ (found)[name];
  }
  return isObject(found) ? found : undefined;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
export function isObject(value) { return value !== null && typeof value === 'object' && !Array.isArray(value); }

const mostChoices = 1000;

/**
 * choices returns the values that a schema allows, with what people call them; undefined if it lists none,
 * or more than anybody would look through.
 * @param {Schema} schema
 * @returns {{ value: any, title: string }[] | undefined}
 */
export function choices(schema) {
  if (Array.isArray(schema.enum)) {
    if (schema.enum.length > mostChoices) return undefined;
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((value, i) => ({ value, title: plain(names[i] ?? value) }));
  }
  if ('const' in schema) return [{ value: schema.const, title: plain(schema.title ?? schema.const) }];
  const listed = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(listed) || listed.length === 0 || listed.length > mostChoices || !listed.every(one => isObject(one) && 'const' in one)) return undefined;
  return listed.map(one => ({ value: one.const, title: plain(one.title ?? one.const) }));
}

/**
 * @typedef {object} Fault
 * @property {string} path of what is wrong, as a JSON pointer
 * @property {string} text
 */

// Keywords whose faults another fault, further down, says better.
const outer = new Set(['properties', 'items', 'prefixItems', 'additionalItems', 'patternProperties', '$ref', 'allOf', '$dynamicRef']);

const mostFaults = 100;

/**
 * faults returns what a value does not fulfil of a schema; undefined if the schema cannot be used. It may
 * take for ever.
 * @param {unknown} value
 * @param {any} schema
 * @returns {Fault[] | undefined}
 */
export function faults(value, schema) {
  let errors;
  try {
    errors = new Validator(schema, '2020-12', false).validate(value).errors;
  } catch {
    return undefined;
  }
  /** @type {Map<string, Fault>} */
  const found = new Map();
  for (const { keyword, instanceLocation, error } of errors) {
    if (outer.has(keyword)) continue;
    if (found.size === mostFaults) break;
    let path = decode(instanceLocation.replace(/^#/, '')), text = error;
    const missing = keyword === 'required' && /required property "(.*)"\.$/s.exec(error);
    if (missing) {
      path += `/${missing[1].replaceAll('~', '~0').replaceAll('/', '~1')}`;
      text = 'It is required.';
    }
    text = inWords(text, keyword);
    found.set(path + keyword, { path, text });
  }
  return [...found.values()];
}

/** What the validator says, the same for people, and the keyword, where the text fits two. */
/** @type {[RegExp, string, string?][]} */
const words = [
  [/^(?:Array has too few items|String is too short) \((\d+) < (\d+)\)\.$/, 'Its length is $1, and has to be at least $2.'],
  [/^(?:Array has too many items|String is too long) \((\d+) > (\d+)\)\.$/, 'Its length is $1, and may be at most $2.'],
  [/^String does not match format "(.*)"\.$/s, 'It is not of the format $1.'],
  [/^String does not match pattern\.?$/, 'It is not of the form that the server wants.'],
  [/^(\S+) is less than (\S+)\.$/, 'It is $1, and has to be above $2.', 'exclusiveMinimum'],
  [/^(\S+) is greater than or equal to (\S+)\.$/, 'It is $1, and has to be below $2.'],
  [/^(\S+) is less than (\S+)\.$/, 'It is $1, and has to be at least $2.'],
  [/^(\S+) is greater than (\S+)\.$/, 'It is $1, and may be at most $2.'],
  [/^Instance type "(.*)" is invalid\. Expected "(.*)"\.$/, 'It is of the type $1, and has to be $2.'],
  [/^Duplicate items at indexes (\d+) and (\d+)\.$/, 'It has the same entry twice.'],
  [/^Property "(.*)" does not match additional properties schema\.$/s, 'The member $1 is not known.'],
  [/^Instance/, 'It'], [/^Items did/, 'It did'],
];

/**
 * @param {string} text of the validator
 * @param {string} keyword
 */
function inWords(text, keyword) {
  const found = words.find(([pattern, , only]) => (only ?? keyword) === keyword && pattern.test(text));
  return found ? text.replace(found[0], found[1]) : text;
}

/** @param {string} pointer */
function decode(pointer) {
  try { return decodeURI(pointer).replaceAll('%23', '#'); } catch { return pointer; }
}
