// Package background starts and shares processes for clients of sse-server stdio.
//
// With --connect, windows share one sse-server, which the first of them starts:
//
//	shared.go    a window: finds the sse-server of a name, or starts it
//	greeting.go  says whether that one is the same as the window would start
//	socket.go    the socket where they meet, for this user alone; peer.go says who is at its other end
//	browsers.go  the sse-server has a window open the browser of its person, where a login is needed
//	unused.go    the sse-server: ends when nobody uses it
//	run.go       programs that run to their end
//
// A process of its own learns what a server says, if the client does not wait for that:
//
//	introduction.go  watches a client until it is initialized
//	learn.go         starts that process, and is what it does
//
// An agent that gives up before its server has booted ends sse-server stdio, and the server with it, often
// by SIGKILL: so the next start would be as cold. While a client waits for the answer to its initialize, and
// until that and the lists are remembered, a second process stands by, in a session of its own. If the first one
// ends before, it has the server say what it has, and remembers it.
//
// If it is not known what the server says in an empty folder, the process stays until the client has left, however it
// ends. It learns that once nobody has used the server for a while: some servers end the process that ran before, or
// need a port or a file that it has. One of those of a command does.
//
//	agent ── initialize ──▶ sse-server stdio ──▶ server, which boots
//	                              │ params, and the end of the pipe
//	                              ▼
//	                        sse-server stdio --learn ── if that comes too early ──▶ server boots once more
//	agent ── initialize ──▶ sse-server stdio answers from memory
package background
