// Package load drives an MCP server over HTTP with many clients at once, and checks that
// every message on a stream is for the client of that stream. With Streamable HTTP, what
// belongs to a call must also come in the response to the POST of that call.
//
// Each client uses the same ids and progress tokens as all others, 1, 2, 3 and so
// on, and each call carries a secret that only its sender knows. A secret that
// comes down another stream, or in the answer to another call, has crossed; a
// register of all secrets tells whose it is. The package also counts answers that
// do not come, come twice or late, or answer no call.
//
//	run ──▶ client × n ──▶ worker × in flight ──POST──▶ server
//	            ▲                                          │
//	            └── reader: take, check, report ◀──stream──┘
//
// The package knows nothing of the gateway and shares no code with it: it is a
// witness. It speaks HTTP/1.1 on connections of its own, one for each stream and
// one for each worker, because the load shares the machine with the server.
package load
