// Package setup helps people to set up clients: the banner and sse-server connect say what to paste, connect --write
// puts it into the files of clients, and sse-server init makes a file of servers from those, and lets clients use that.
// sse-server service makes a service of the system. It starts what Command.Try and System.Run start, and nothing else.
//
// Banner writes to any writer. Connect and Init are commands: they print what they have done to Stdout, what went wrong
// or is left to do to Stderr, and return the exit code. Both get a configuration that config.Load has checked.
//
// These always hold:
//
//   - The banner and connect show no secret: parts of a URL that may be one are left out, and Stderr says which.
//     With --write connect refuses such a URL.
//   - A file that is there is not overwritten by init, and of the file of a client connect --write changes its own
//     entries alone (package clientfile).
//   - A server that leads back to this sse-server is left out of the file that init makes.
//   - What may be secret of a server is not in the file that init makes, but in an env-file of this user, which nobody
//     else may read. Without a directory for that it is in the file itself, and Stderr says so.
//
// From an entry of a client with "env": {"LEVEL": "info", "NOTES_TOKEN": "sk-123"} init makes
//
//	servers:
//	  # from .mcp.json
//	  notes:
//	    command:
//	      - npx
//	      - "-y"
//	      - "notes@1.2"
//	    env-file: /home/me/.local/state/sse-server/env/notes-dceha27xqhdwwzmp3nwaw3tt4y.env
//
// and the env-file
//
//	LEVEL="info"
//	NOTES_TOKEN="sk-123"
//
// # Order of the files
//
//	setup.go    the servers as clients are told of them
//	banner.go   what is shown when sse-server serves
//	connect.go  the entry for a client: printed, written, taken back
//	init.go     the file of servers; config.FileOf makes its text
//	offer.go    clients that use the gateway in the place of their own entries
//	service.go  the service of the system
package setup
