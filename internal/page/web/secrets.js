// What a schema calls secret: passwords, and what is written alone. It is sent to the server, and is nowhere else.
import { at, isObject, mostSteps, spend } from './schema.js';

/** @typedef {import('./schema.js').Schema} Schema */

/**
 * Walk is one through a schema.
 * @typedef {object} Walk
 * @property {Schema} root
 * @property {import('./schema.js').Steps} steps
 * @property {boolean} [isNested] whether there are documents inside of the root; undefined until somebody asks
 */

/**
 * withoutSecrets returns a value without what is secret, or with a sign in its place. If nobody can say what
 * is secret, all is.
 * @param {any} value
 * @param {any} schema
 * @param {string} [sign]
 * @returns {any}
 */
export function withoutSecrets(value, schema, sign) {
  /** @type {Walk} */
  const walk = { root: isObject(schema) ? schema : {}, steps: { left: mostSteps } };
  /** @type {(value: any, schemas: unknown[]) => any} */
  const open = (value, schemas) => {
    const all = new Set();
    for (const one of schemas) collect(one, walk, all); // throws if nobody can say
    const parts = [...all];
    if (parts.some(part => part.writeOnly === true || part.format === 'password')) return sign;
    if (Array.isArray(value)) {
      return value.map((one, i) => open(one, parts.flatMap(part => ofItem(part, i))))
        .filter(one => one !== undefined);
    }
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, open(member, parts.flatMap(part => ofMember(part, name)))])
      .filter(([, member]) => member !== undefined));
  };
  try { return open(value, [walk.root]); } catch { return sign; }
}

/**
 * collect adds a schema and those that apply, or may apply, to the same value. It throws an error if a
 * reference does not say which schema it means: it is no pointer within the document, or depends on how it
 * was reached.
 * @param {unknown} schema
 * @param {Walk} walk
 * @param {Set<Schema>} all
 */
function collect(schema, walk, all) {
  spend(walk.steps, 1);
  if (!isObject(schema) || all.has(schema)) return;
  all.add(schema);
  if ('$dynamicRef' in schema || '$recursiveRef' in schema) throw new Error('a reference that depends on how it was reached');
  if ('$ref' in schema) {
    walk.isNested ??= hasInner(walk.root);
    const target = typeof schema.$ref === 'string' && !walk.isNested && at(walk.root, schema.$ref);
    if (!target) throw new Error('a reference to nothing that is known');
    collect(target, walk, all);
  }
  for (const word of ['allOf', 'anyOf', 'oneOf']) {
    if (Array.isArray(schema[word])) for (const one of schema[word]) collect(one, walk, all);
  }
  for (const word of ['if', 'then', 'else']) collect(schema[word], walk, all);
  for (const word of ['dependentSchemas', 'dependencies']) {
    if (isObject(schema[word])) for (const one of Object.values(schema[word])) collect(one, walk, all);
  }
}

/**
 * hasInner reports whether a document has another one inside, with an $id of its own: a pointer there is
 * not one from the root.
 * @param {Schema} root
 */
function hasInner(root) {
  const steps = { left: mostSteps };
  /** @type {(part: unknown) => boolean} */
  const has = part => {
    if (part === null || typeof part !== 'object') return false;
    spend(steps, 1);
    if (!isObject(part)) return Object.values(part).some(has);
    return part !== root && typeof part.$id === 'string' || Object.values(part).some(has);
  };
  return has(root);
}

/**
 * ofItem returns the schemas that a schema has, or may have, for a member of a list.
 * @param {Schema} schema
 * @param {number} i
 * @returns {unknown[]}
 */
function ofItem({ prefixItems, items, additionalItems, unevaluatedItems, contains }, i) {
  return [prefixItems?.[i], Array.isArray(items) ? items[i] : items, additionalItems, unevaluatedItems, contains];
}

/**
 * ofMember returns the schemas that a schema has, or may have, for a member.
 * @param {Schema} schema
 * @param {string} name
 * @returns {unknown[]}
 */
function ofMember({ properties, patternProperties, additionalProperties, unevaluatedProperties }, name) {
  const isNamed = isObject(properties) && Object.hasOwn(properties, name);
  return [...isNamed ? [properties[name]] : [additionalProperties, unevaluatedProperties], ...isObject(patternProperties) ? Object.values(patternProperties) : []];
}
