// Package wire reads JSON-RPC messages as peers really write them: lines in which other text stands beside a message,
// and messages that are broken, cut, or lack what JSON-RPC 2.0 wants. Package jsonrpc takes valid messages alone.
// It also has what a Conn of the gateway tells beside messages: their form.
// docs/compatibility.md says of each leniency whose text can stand there.
package wire
