// Prints internal/page/web/jsonschema.js: the modules of @cfworker/json-schema as one, for the page, which has no
// build step. Into the file: node jsonschema.mjs > ../../internal/page/web/jsonschema.js
import { readFileSync } from 'node:fs';

const folder = new URL('node_modules/@cfworker/json-schema/', import.meta.url);
const { name, version, license, author } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
const modules = ['deep-compare-strict', 'pointer', 'ucs2-length', 'format', 'dereference', 'validate', 'validator'];
const text = modules.map(module => readFileSync(new URL(`dist/esm/${module}.js`, folder), 'utf8')
  .replace(/^import .*\n/gm, '').replace(/^export /gm, '').replace(/^\/\/# sourceMappingURL.*$/gm, '').trim()).join('\n');

console.log(`// Made by e2e/clients/jsonschema.mjs of the npm package ${name} ${version}: do not edit it.
//
// The ${license} License. Copyright (c) ${author?.name ?? author}
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction, including
// without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
// following conditions: The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY
// KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A
// PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
// ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
// @ts-nocheck
export const Validator = (() => {
${text}
return Validator;
})();`);
