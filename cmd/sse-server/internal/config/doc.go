// Package config reads the configuration of sse-server from flags, environment variables and a YAML file, and says
// where each option was given. It serves nothing, and starts nothing.
//
// # An option
//
// Each option is a field of Config or Server. Its tags have all that --help and docs/reference/config.md say about it;
// its default is in newConfig. The name of the field gives all the others:
//
//	RequestTimeout Duration   the field of Server
//	--request-timeout=5s      the flag
//	SSE_SERVER_REQUEST_TIMEOUT=5s
//	request-timeout: 5s       the key of the file, for all servers or in the entry of one
//
// A flag wins over a variable, a variable over the file, and the entry of a server over the rest of the file. Place
// returns where an option was given, as people have to change it: every error of an option begins with it.
//
// # What Load promises
//
// Load returns a configuration that is whole: each value is in its range, the files that it is made of have been
// read, and references such as ${NAME} are replaced. What package gateway refuses beside that, Explain says in the
// words of the options. Fields without a flag follow from the options. Nobody changes a Config later: a reload loads
// a new one, and CheckChange compares the two.
//
//	servers:
//	  docs:
//	    url: https://mcp.example.com/mcp
//	    header: {Authorization: "Bearer ${DOCS_TOKEN}"}
//
// becomes a Config with one Server, whose Name is docs and whose Remote has the token. With the file of a client
// (mcpServers) the same comes from its own words; package clientfile reads those.
//
// These always hold:
//
//   - A value that may be secret is in no error and no warning: those of pairs such as env and header, and those that a
//     reference has.
//   - The file of a project, which others may have written, sends no variable of this user to a server unless --expand
//     names it, and in the file of any client ${file:PATH} is no reference.
//   - An error names the option where it was given, and what is wanted there.
//   - All files that were read are known: Files has them, also those that are missing, and Digests their hashes.
//
// # Mistakes
//
// What people mean is here too, and not in a package of its own: refuse.go and meant.go read the fields and tags of the
// options, so that no flag is named in an error that does not exist, and itself.go compares a server with the addresses
// and paths of the same configuration. Each would need the whole Config, and Load needs each.
//
// # Order of the files
//
//	config.go    the options, Load, flags and variables; value.go: types of values; help.go, usage.txt: --help
//	file.go      the YAML file; clients.go: the file of a client in its place; package envfile: env-files
//	check.go     what options must fulfil; connect.go, idkey.go, token.go, oauth.go: those of one feature
//	upstream.go  the options for package gateway, and the process or the URL of a server
//	itself.go    refuses a server that is this sse-server itself
//	change.go    reads files; compares configurations for a reload
//	title.go     the name of a server for people; package naming finds it
//	make.go      writes a file for sse-server init; harmless.go: what in it is no secret; behind.go: what an entry
//	             leads to
//	refuse.go    errors for what people type; meant.go: what they mean; supergateway.go: the command lines of another
//	             program
//	values.go    what can follow a word, for completions
package config
