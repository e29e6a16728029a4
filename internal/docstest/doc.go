// Package docstest keeps the documentation true. It has only tests: links
// resolve, flags in shell blocks exist, Go blocks are the code of examples that
// run, and the tables of states and errors say what the code does.
package docstest
