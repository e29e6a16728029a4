// Package upstream reaches MCP servers.
//
// An [Upstream] opens sessions; each session is a [jsonrpc.Conn]. There are
// these kinds: [Handle] calls a function for each message, [Serve] runs a
// server over an in-memory pair of streams, [Command] starts a child process for
// each session and speaks to it over stdio, [URL] reaches a server over HTTP, and
// [HTTPHandler] does so without a socket. None of them knows who the clients are,
// or changes what is in a message; only sessions with servers of MCP 2026-07-28
// translate, because those know no sessions.
//
// All keep the contract of jsonrpc.Conn. Send never waits: what the
// server has not taken yet is kept up to 8 MiB, then Send fails with
// jsonrpc.ErrBusy; one message over that size passes when it is alone. Recv
// returns one message at a time, without line breaks, and at the end says why
// it ended: io.EOF for a server that ended in good order, else an error such as
// "exit status 1". Close is bounded; how long it may take stands at each kind.
// After Close a session holds no goroutine, descriptor or process, functions of
// the caller that do not return aside.
//
// # The life of a child process
//
//	Dial ──▶ start ──▶ running ──────────────────────────▶ Close
//	           │          │ exits by itself                  │ stdin: what is queued, then EOF
//	           │          │                                  │ CloseTimeout
//	     not found,       │                                  ▼
//	     no permission    │                                SIGTERM to its process group
//	           │          │                                  │ CloseTimeout
//	           ▼          ▼                                  ▼
//	         error    SIGKILL to what is left ◀── exit ── SIGKILL to its process group
//	                  of its process group
//	                      │
//	                      ▼
//	                  reaped; Recv gives what is still in the pipe, then the reason
//
// The child is the leader of its own process group, so that servers behind
// wrappers (npx, uv, sh) die with them. On Linux the kernel kills it when the
// gateway dies (PR_SET_PDEATHSIG). That signal is tied to the thread that forked
// (golang/go#27505), hence one goroutine, locked to its thread, starts the child
// and stays in the wait for it: the thread cannot end before the child does. It
// costs no thread more, because a wait for a process occupies one anyway. (The Go
// runtime ends a program that needs more than 10,000 threads; whoever wants more
// children than that must raise debug.SetMaxThreads.)
// Grandchildren do not inherit the signal; they see the end of their stdin.
//
// Standard error is always read, so that no child can hang on a full pipe, and
// logged line by line at level info as "server stderr", at a bounded rate: it is
// the server's own log, and operators need it. Servers must not write secrets
// to it. Lines on stdout that are not JSON are dropped and counted; their
// content is logged at level debug only.
//
// On other Unix systems there is no parent-death signal. On Windows there are
// no process groups either: Close ends the process itself, at the step at which
// it would get SIGTERM elsewhere.
//
// # Servers without sessions
//
// A server of MCP 2026-07-28 has neither an initialize nor a session. It is
// presented as a session of 2025-11-25 all the same, so that the hops above need
// not know:
//
//	initialize, logging/setLevel       answered here; what they say is in each later request
//	ping                               server/discover: the answer means that the server is there
//	any other request                  one POST, with _meta and the headers that mirror it
//	input_required                     requests to the client, and the same request again with the answers
//	resources/subscribe, list_changed  one subscriptions/listen for all
//	notifications/cancelled, Close     the response is closed
//
// All that is not named there passes byte for byte.
//
// # Sessions over HTTP
//
//	exchange       one request at a time: headers, limits, errors without secrets
//	undecided      finds out what the server speaks, by its answer to initialize
//	streamable     MCP 2025-03-26 to 2025-11-25: a POST for each message, resumption, GET
//	remoteSSE      MCP 2024-11-05: one stream, POSTs to the endpoint that it names
//	modernConn     MCP 2026-07-28: no session at the server, one presented here
//
// A request that fails as HTTP gets an error response, with data that says why
// (docs/reference/errors.md). The session ends when the server has forgotten it,
// cannot be reached, or fails. A response that breaks off is resumed from its last
// event, where events have ids; no request is ever posted twice.
package upstream
