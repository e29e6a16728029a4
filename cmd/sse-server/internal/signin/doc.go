// Package signin has the commands login, logout and logins. What a login is, package login knows; this one talks with
// the person.
package signin
