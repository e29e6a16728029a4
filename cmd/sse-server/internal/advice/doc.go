// Package advice knows what to do about a server that does not start, by the reason that sse-server gives and by
// the last lines of its stderr. The advice is one sentence without a full stop, in the words of the command line or,
// for a server of a file, in those of the file.
//
// The table remedies has what is known, in the order in which it is tried. A regular expression comes into it with a
// text in testdata/says.txt that it matches: the output of a real program, or a text quoted from an issue, with its
// number. So nobody has to guess which program it is for.
package advice
