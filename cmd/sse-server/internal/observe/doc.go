// Package observe writes what operators read of the program: its log, the audit log and traces. None of them stops a
// call: what cannot be written is dropped, counted, and told in the log, as far as that can be written.
//
//	log.go      the log, whose reader may stall
//	audit.go    the audit log, in a file that may be moved, or on stdout
//	tracing.go  spans for a collector of OpenTelemetry
package observe
