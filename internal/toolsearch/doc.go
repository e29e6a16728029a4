// Package toolsearch finds tools by the words of a question.
//
// An [Index] is made of a list of tools once, and does not change; it is safe for concurrent use. It ranks by BM25 over
// the words of a tool's name, title, description and arguments, in their stems. Words that mean the same in the names
// of tools, such as folder and directory, find each other for half of the score. The package knows neither servers nor
// messages.
package toolsearch
