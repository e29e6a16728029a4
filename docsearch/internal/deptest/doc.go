// Package deptest holds the rules about which package of docsearch may import which. It
// has no code outside its test.
package deptest
