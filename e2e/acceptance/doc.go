// Package acceptance holds the founding rules of the project as tests of the built programs,
// one function for each sentence of a rule. README.md has the table. These tests are never
// deleted or relaxed with a refactoring. It has no code outside its tests.
package acceptance
