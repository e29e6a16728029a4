// Package selection has the rules that choose among the tools, prompts and resources of one server.
//
// A rule is about the server's own names. It holds for lists and for calls alike: a name that the rules leave out is
// in no list, and its call must get the error of an unknown name. The package compiles rules, applies them to a name
// and to a page of a list, and says which rules met nothing. It knows no sessions and no prefixes.
//
// Globs have two special characters. An asterisk stands for any text, and also for none; a question mark stands for
// one character. A slash is a character like any other, because names of tools are no paths. Case counts.
//
// The hints of tools, which [Only] reads, are the server's word. They protect nobody from a server that lies.
package selection
