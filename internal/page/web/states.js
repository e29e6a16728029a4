// What all pages say of the state of a server, and of its failures: docs/glossary.md has the words.

/** What a cached server does when somebody needs it. */
export const ofCached = 'starts with the first call';

/**
 * partsOf returns what a failure says, and the lines that the server has written to stderr.
 * @param {string} message
 * @returns {[string, string]}
 */
export function partsOf(message) {
  const [what, ...words] = message.split(/; (?:stderr|its stderr says): /);
  return [what, words.join(' | ').replaceAll(' | ', '\n')];
}

/**
 * stateName returns what people call a state of a server.
 * @param {string} state as the gateway has it
 */
export function stateName(state) { return state === 'locked' ? 'wants a token' : state; }
