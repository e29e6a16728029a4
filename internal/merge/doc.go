// Package merge makes one list out of the lists of several servers, and says where each name and URI of it leads.
//
// [Build] is a function of the members, their rules and their lists, and of nothing else: it has neither a clock nor a
// lock, and sends no message. The name of a tool does not even depend on the lists: see [FinalName]. A [Result] has
// what a client is told, the routes of its calls, and what is left out, each with its reason. Once made, it is not
// changed, and is safe for concurrent use.
package merge
