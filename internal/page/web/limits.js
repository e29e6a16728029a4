// What clients will not take of the tools of this server, from the gateway's table of clients.
import { clip, plain } from './dom.js';

/**
 * @typedef {object} Limit
 * @property {string} title
 * @property {number} [tools]
 * @property {number} [descriptions]
 * @property {string} [over]
 * @property {number} [description]
 * @property {number} [nameLength]
 * @property {string} [front]
 * @property {string} [longNames]
 * @property {string[]} [keywords]
 * @property {string} [schemas]
 */

/** @param {unknown} text */
function characters(text) { return typeof text === 'string' ? [...text].length : 0; }

/**
 * lossesOfTool says what clients do with a tool that is over their limits.
 * @param {any} tool
 * @param {string} server its name in the configurations of clients
 * @param {Limit[]} clients
 * @returns {string[]}
 */
export function lossesOfTool(tool, server, clients) {
  const found = [];
  for (const client of clients) {
    if (client.description && characters(tool.description) > client.description) {
      found.push(`${client.title} cuts its description at ${client.description} characters`);
    }
    const front = (client.front || '%s_').replace('%s', server);
    if (client.nameLength && characters(front + plain(tool.name)) > client.nameLength) {
      found.push(`${client.title} takes names of ${client.nameLength} characters with “${clip(front, 40)}” in front: it ${client.longNames || 'may not take it'}`);
    }
    const keyword = client.keywords?.find(word => tool.inputSchema && typeof tool.inputSchema === 'object' && Object.hasOwn(tool.inputSchema, word));
    if (keyword) found.push(`${client.title} does not take ${keyword} at the top of a schema: it ${client.schemas}`);
  }
  return found;
}

/**
 * lossesOfAll says which clients do not take as many tools.
 * @param {any[]} tools
 * @param {Limit[]} clients
 * @returns {string[]}
 */
export function lossesOfAll(tools, clients) {
  const found = [], all = tools.reduce((sum, tool) => sum + characters(tool.description), 0);
  for (const client of clients) {
    if (client.tools && tools.length > client.tools) found.push(`${client.title} takes ${client.tools} tools over all servers, and ${client.over}`);
    if (client.descriptions && all > client.descriptions) {
      found.push(`${client.title} takes ${client.descriptions} characters of descriptions over all servers, and ${client.over}; these have ${all}`);
    }
  }
  return found;
}
