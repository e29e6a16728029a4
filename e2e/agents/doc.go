// Package agents runs real agents, the programs that people use, against the built sse-server.
//
// The agents come from npm, at the versions of package-lock.json. Behind them is a scripted
// model, an HTTP server that speaks the APIs of the real ones just far enough that an agent
// calls the tools that a test wants. Behind the gateway is a server that the test binary is
// itself. So a test knows what an agent does: which tools it offers to its model, which calls
// reach the server, and which results come back to the model. The texts of an agent are not read.
//
// The files have the build tag agents: the programs weigh two gigabytes, and a run takes
// minutes. "make agents" runs them, and writes the table of docs/reference/clients.md. The requests of
// the agents are recorded in testdata, and package e2e replays them without the programs.
package agents
