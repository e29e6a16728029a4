// Preloaded into a server that someone else wrote (node --import ./loopback.mjs):
// it listens on a free port of 127.0.0.1, whatever it asks for, and prints the
// port on the first line of stdout. ANNOUNCE is the path to print after it.
import { Server } from "node:net";

console.log = console.error; // stdout is for the URL alone
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => process.stdout.write(`http://127.0.0.1:${this.address().port}${process.env.ANNOUNCE}\n`));
  return listen.call(this, { port: Number(process.env.LISTEN_PORT ?? 0), host: "127.0.0.1" }, ...rest.filter((arg) => typeof arg === "function"));
};
