// How servers are called that are in a state, on all pages: docs/glossary.md has the words.

/** What a cached server does when somebody needs it. */
export const ofCached = 'starts with the first call';

/**
 * stateName returns what people call a state of a server.
 * @param {string} state as the gateway has it
 */
export function stateName(state) { return state === 'locked' ? 'wants a token' : state; }
