// What a schema calls secret: passwords, and what is written alone. It is sent to the server, and is nowhere else.
import { at, isObject, mostSteps, spend } from './schema.js';

/** @typedef {import('./schema.js').Schema} Schema */

/**
 * withoutSecrets returns a value without what is secret, or with a sign in its place. If nobody can say what
 * is secret, all is.
 * @param {any} value
 * @param {any} schema
 * @param {string} [sign]
 * @returns {any}
 */
export function withoutSecrets(value, schema, sign) {
  const root = isObject(schema) ? schema : {}, steps = { left: mostSteps };
  /** @type {(value: any, schemas: unknown[]) => any} */
  const open = (value, schemas) => {
    const all = new Set();
    for (const one of schemas) collect(one, root, steps, all);
    const parts = [...all];
    if (parts.some(part => part.writeOnly === true || part.format === 'password')) return sign;
    if (Array.isArray(value)) {
      return value.map((one, i) => open(one, parts.flatMap(part => [part.prefixItems?.[i], Array.isArray(part.items) ? part.items[i] : part.items])))
        .filter(one => one !== undefined);
    }
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, open(member, parts.flatMap(part => ofMember(part, name)))])
      .filter(([, member]) => member !== undefined));
  };
  try { return open(value, [root]); } catch { return sign; }
}

/**
 * collect adds a schema and those that apply, or may apply, to the same value.
 * @param {unknown} schema
 * @param {Schema} root
 * @param {import('./schema.js').Steps} steps
 * @param {Set<Schema>} all
 */
function collect(schema, root, steps, all) {
  spend(steps, 1);
  if (!isObject(schema) || all.has(schema)) return;
  all.add(schema);
  if (typeof schema.$ref === 'string') collect(at(root, schema.$ref), root, steps, all);
  for (const word of ['allOf', 'anyOf', 'oneOf']) {
    if (Array.isArray(schema[word])) for (const one of schema[word]) collect(one, root, steps, all);
  }
  for (const word of ['if', 'then', 'else']) collect(schema[word], root, steps, all);
}

/**
 * ofMember returns the schemas that a schema has for a member.
 * @param {Schema} schema
 * @param {string} name
 * @returns {unknown[]}
 */
function ofMember({ properties, patternProperties, additionalProperties }, name) {
  const isNamed = isObject(properties) && Object.hasOwn(properties, name);
  return [isNamed ? properties[name] : additionalProperties, ...isObject(patternProperties) ? Object.values(patternProperties) : []];
}
