// Package clientfile reads the servers in the files of clients, such as ~/.cursor/mcp.json, and writes entries into
// them. The files belong to people and their clients, which may write them at the same time. Package clients, in the
// module's internal, has the table of them: which client has which file, below which key, in which format.
//
// # Writing
//
// An Editor adds the entries of sse-server and takes them back. All else of the file stays: comments, the order, line
// ends. Write turns the file
//
//	{
//	  // mine
//	  "mcpServers": {"notes": {"command": "notes"}}
//	}
//
// into
//
//	{
//	  // mine
//	  "mcpServers": {"notes": {"command": "notes"},"docs":{"url":"http://127.0.0.1:8080/mcp"}}
//	}
//
// These always hold:
//
//   - An entry of somebody else is an error, not overwritten: one with the same name that has more than a URL is
//     replaced only if the caller says so.
//   - The file is replaced in one step, and only if it is still as it was read. If its client has written it
//     meanwhile, the change is made anew from what is there then.
//   - What was there is kept before the file changes: the whole file as ID.copy, and each entry in ID.json, where ID is
//     a hash of the path. Undo restores from ID.json, and leaves an entry that somebody has changed since.
//   - One sse-server at a time writes, under a lock of this user.
//
// ID.json of the change above; the texts are those of the entries, and null says that there was none:
//
//	{"file":"mcp.json","entries":{"docs":{"before":null,"after":"{\"url\":\"http://127.0.0.1:8080/mcp\"}"}}}
//
// # Reading
//
// Find returns the servers of all clients of this user and of the folder that the program runs in, for sse-server
// init. It reads what clients mean: members that switch a server off, and variables that a client knows, such as
// ${workspaceFolder}, which it replaces. References to the environment stay: ${NAME} is one of sse-server too. A file
// or an entry that cannot be read is an error beside the servers of the others. Read returns one entry as it is
// written, with the place of each member, for errors about a file that is given to --config.
//
// Nothing here starts a server.
//
// # Order of the files
//
//	written.go     one entry as a client's file has it, by the names that clients have for its members
//	found.go       the servers of all files, with their references replaced
//	off.go         the servers that a client has switched off, by other files too
//	clientfile.go  Write, and entries in JSON and TOML
//	yaml.go        entries in the list of a YAML file
//	form.go        one entry in each of the three formats: its text, another text in its place
//	edit.go        the Editor: lock, copy, record, Undo
package clientfile
